"""The addresses in the data of a script, with the words beside them: bounded, whatever the data is."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from afresh.errors import ExtractError
from afresh.extract.data.json_tree import parse_json_text
from afresh.extract.html.hidden_links.found import Script, told

MOST_CHARS = 1_000_000  # of all scripts of one kind on a page; those that go beyond are not read
MOST_VALUES = 20_000  # of one script
DEEPEST = 20
LONGEST_KIND = 100

# names of fields that describe what stands beside them, the best first; without case, dashes, underscores
_TELLING = (
    *("linktitle", "linktext", "title", "label", "text", "heading", "headline", "name", "displayname"),
    *("caption", "anchor", "linklabel", "menutitle", "navtitle", "shorttitle", "arialabel", "alt"),
    *("description", "summary", "teaser", "tooltip"),
)
_RANKS = {name: rank for rank, name in enumerate(_TELLING)}


class Value(NamedTuple):
    """An address in data: the field that holds it, and the words beside it."""

    field: str  # in plain form
    raw_url: str
    text: str
    kind: str = ""  # `@type` of the object that holds it


class _Place(NamedTuple):
    """A value that is still to be looked at."""

    value: Any
    field: str
    text: str  # of the object that holds it
    kind: str
    depth: int


def data_of(scripts: Iterable[Script]) -> Iterator[Any]:
    """What scripts hold that are JSON and not too long."""
    for text in texts_of(scripts):
        with suppress(ExtractError):
            yield parse_json_text(text)


def texts_of(scripts: Iterable[Script]) -> Iterator[str]:
    """The texts of scripts, as long as they are not too long in all."""
    room = MOST_CHARS
    for script in scripts:
        text = script.node.text()
        room -= len(text)
        if room < 0:
            return
        yield text


def addresses_in(data: Any) -> Iterator[Value]:
    """Every text in the data that looks like an address, in order."""
    waiting, left = [_Place(data, "", "", "", 0)], MOST_VALUES
    while waiting and left:
        place = waiting.pop()
        left -= 1
        match place.value:
            case str() as text:
                if is_address(text):
                    yield Value(place.field, text, place.text, place.kind)
            case dict() as held if place.depth < DEEPEST:
                waiting += reversed(_fields(held, place, left))
            case list() as held if place.depth < DEEPEST:
                waiting += reversed(_items(held, place, left))
            case _:
                pass


def is_address(text: str) -> bool:
    """Whether a text begins as an address does."""
    return text.startswith(("/", "http://", "https://")) and text != "/"


def plain_name(field: str) -> str:
    """The name of a field without case, dashes and underscores."""
    return field.lower().replace("_", "").replace("-", "")


def _fields(held: dict[str, Any], place: _Place, most: int) -> list[_Place]:
    """The fields of an object; one that says nothing itself, as `link: {url}`, is told by what is around."""
    own, kind = words_beside(held), f"{held.get('@type', '')}"[:LONGEST_KIND]
    text, found = own or place.text, []
    for name, value in islice(held.items(), most):
        if isinstance(value, str | list | dict):
            around = text if isinstance(value, str) else own
            found.append(_Place(value, plain_name(name), around, kind, place.depth + 1))
    return found


def _items(held: list[Any], place: _Place, most: int) -> list[_Place]:
    """The items of a list; what is told of the list is told of an address in it, but of no object."""
    return [
        _Place(item, place.field, place.text if isinstance(item, str) else "", place.kind, place.depth + 1)
        for item in islice(held, most)
        if isinstance(item, str | list | dict)
    ]


def words_beside(held: dict[str, Any]) -> str:
    """What an object says of itself in the best of its describing fields."""
    best, chosen = len(_RANKS), ""
    for name, value in held.items():
        if isinstance(value, str) and value and not is_address(value):
            rank = _RANKS.get(plain_name(name), best)
            if rank < best and (text := told(value)):
                best, chosen = rank, text
    return chosen
