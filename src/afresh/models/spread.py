"""The matrix that spreads the vectors of wordllama over all directions: `python -m afresh.models.spread`.

Most vectors of the vocabulary lean the same few ways, which makes all texts look alike. Multiplying with
C^-1/4, C being how the vocabulary is spread, evens that out. It depends on the weights alone, not on what is
indexed, so it is made once and shipped.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afresh.ports import Matrix

FILE = Path(__file__).parent / "data" / "wordllama-256-spread.npy"


def spread_of(weights: "Matrix") -> "Matrix":
    """The matrix for a vocabulary: the fourth root of its covariance, inverted."""
    import numpy as np

    wide = weights.astype(np.float64)
    values, vectors = np.linalg.eigh(wide.T @ wide / len(wide))
    spread: Matrix = ((vectors * values**-0.25) @ vectors.T).astype(np.float32)
    return spread


def load_spread() -> "Matrix":
    """The matrix as shipped."""
    import numpy as np

    spread: Matrix = np.load(FILE)
    return spread


if __name__ == "__main__":
    import numpy

    from afresh.models.wordllama import installed

    numpy.save(FILE, spread_of(installed()[1]))
