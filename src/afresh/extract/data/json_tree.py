"""JSON of any origin as Python values, and safe ways to look into them: nothing is what it should be."""

import json
from typing import Any

from afresh.errors import ExtractError
from afresh.extract.decode import decode
from afresh.model.fetch import Body


class Number(str):
    """A number with a fraction, as it is written: `1.10` is not `1.1` to those who search for it."""

    __slots__ = ()


def parse_json(body: Body) -> Any:
    """The value of a JSON body; ExtractError says what is wrong with it."""
    return parse_json_text(decode(body.data, body.charset))


def parse_json_text(text: str) -> Any:
    """The value of a JSON text; ExtractError says what is wrong with it."""
    try:
        return json.loads(text, parse_float=Number)
    except RecursionError:
        raise ExtractError("JSON that is nested too deeply") from None
    except ValueError as error:
        raise ExtractError(f"broken JSON ({error})") from error


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def words(value: Any) -> str:
    """The value if it is a string, or the digits of a number; else nothing."""
    if isinstance(value, str):
        return value
    return f"{value}" if isinstance(value, int) and not isinstance(value, bool) else ""
