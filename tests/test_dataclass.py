"""Records behave like those of the standard library, whose functions accept them."""

import copy
import dataclasses
import pickle

import pytest

from afresh.dataclass import dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: int
    tags: list[str] = field(default_factory=list)
    secret: str = field(default="", repr=False)
    note: str = field(default="", compare=False, metadata={"doc": "for people"})

    @property
    def double(self) -> int:
        return 2 * self.x


@dataclass(frozen=True, slots=True, kw_only=True)
class Place(Point):
    name: str = "here"


@dataclass(slots=True)
class Counter:
    count: int
    step: int = 1

    def __post_init__(self) -> None:
        self.count += self.step


def test_a_record_is_made_compared_and_printed_like_a_dataclass() -> None:
    point = Point(x=1, secret="abc", note="n")
    assert (point.double, point.tags, Point(x=1).tags is point.tags) == (2, [], False)
    assert repr(point) == "Point(x=1, tags=[], note='n')"
    assert (point == Point(x=1, secret="abc"), point != Point(x=1, secret="abc")) == (True, False)
    assert point not in (Point(x=1), Place(x=1, secret="abc"))
    with pytest.raises(AttributeError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        replace(point, y=1)  # type: ignore[call-arg]


def test_replace_copy_and_pickle_keep_the_other_fields() -> None:
    place = Place(x=1, tags=["a"], name="there", note="n")
    for other in (replace(place, x=2), dataclasses.replace(place, x=2)):
        assert (type(other), other.x, other.tags, other.name, other.note) == (Place, 2, ["a"], "there", "n")
    assert pickle.loads(pickle.dumps(place)) == copy.deepcopy(place) == place


def test_functions_of_the_standard_library_see_the_fields_in_their_order() -> None:
    assert [each.name for each in dataclasses.fields(Place)] == ["x", "tags", "secret", "note", "name"]
    assert dataclasses.fields(Point)[3].metadata == {"doc": "for people"}
    assert dataclasses.is_dataclass(Place(x=1))
    assert dataclasses.asdict(Counter(1)) == {"count": 2, "step": 1}


def test_changeable_records_have_no_hash_and_match_by_position() -> None:
    match Counter(1, 2):
        case Counter(count, step):
            assert (count, step) == (3, 2)
    with pytest.raises(TypeError):
        hash(Counter(1))
