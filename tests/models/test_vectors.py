"""What rows of numbers have to be."""

import numpy as np
import pytest

from afresh.errors import EmbedError
from afresh.models.local import checked_rows, unit_rows


def test_rows_get_length_1_whatever_their_size() -> None:
    rows = checked_rows([[3e38, 3e38], [1e-40, 0.0], [-3, 4]], 3, None, "m")
    assert np.allclose(rows, [[0.5**0.5, 0.5**0.5], [1.0, 0.0], [-0.6, 0.8]])


def test_a_row_that_points_nowhere_is_the_first_axis() -> None:
    assert unit_rows(np.zeros((2, 3), np.float32)).tolist() == [[1, 0, 0]] * 2


@pytest.mark.parametrize(
    "rows",
    [
        None,
        5,
        [],
        [1.0, 2.0],
        [[1.0], [1.0, 2.0]],
        [[], []],
        [[1.0], [float("nan")]],
        [[1.0], [float("inf")]],
        [[1.0], [1e39]],
        [[1.0], [10**400]],
        [[1.0], [0.0]],
        [[1.0], ["high"]],
        [[1.0], [None]],
        [[[1.0]], [[1.0]]],
        [[1.0], [1.0], [1.0]],
        {"a": 1},
    ],
)
def test_F93_what_cannot_be_the_vectors_of_two_texts_is_refused(rows: object) -> None:
    with pytest.raises(EmbedError, match="m answered with"):
        checked_rows(rows, 2, None, "m")
    with pytest.raises(EmbedError, match="instead of 2"):
        checked_rows([[1.0], [1.0]], 2, 2, "m")
