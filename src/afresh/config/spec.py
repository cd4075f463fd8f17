"""Specify a setting (type, range, choices), and check values, with an error for invalid ones."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from afresh.dataclass import dataclass, field
from afresh.links.score import KeywordError, checked_keywords, parse_keywords
from afresh.plugins import installed_plugins

KINDS = {
    "text": "text",
    "flag": "true or false",
    "whole": "a whole number",
    "number": "a number",
    "list": "a list of strings",
    "weights": "keywords with weights from 0 to 1, such as {budget: 1, contact: 0.5}",
}
TRUE = frozenset({"true", "yes", "on", "1"})
FALSE = frozenset({"false", "no", "off", "0"})
_WHOLE = re.compile(r"[-+]?[0-9][0-9_]*")

Form: TypeAlias = Callable[[str], str]
OPERATOR_FORMS: set[Form] = set()
HIDDEN = "a secret value (not shown)"


def operator_only(form: Form) -> Form:
    """Mark the parser of a value (path, key, endpoint, program) that neither sources nor remote callers may set."""
    OPERATOR_FORMS.add(form)
    return form


class InvalidValue(ValueError):
    """Raised if a setting does not accept a value; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value as text from a file or variable, before it is converted to the type of its setting."""

    text: str
    kind: str = "str"  # the type in YAML: str, bool, int, float, null, timestamp …
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A key in a settings file with its line and its `value`, which is None if a mapping follows."""

    path: tuple[str, ...]
    value: Scalar | list[Scalar] | None
    line: int
    items: Mapping[str, Scalar] | None = None  # the mapping if all its values are plain, else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSpec:
    kind: str
    doc: str
    low: float | None = None
    high: float | None = None
    most: int | None = None  # maximum number of items in a list
    choices: tuple[str, ...] = ()
    plugins: str = ""  # group of entry points, whose names are choices, too
    optional: bool = False
    secret: bool = False
    form: Form | None = None  # checks and normalises a text; raises InvalidValue
    operator: bool = False  # a path, key, endpoint or program, so that only the operator may set it

    @property
    def is_operator_only(self) -> bool:
        """Return whether only the settings file, environment and flags may set this setting, but not a source."""
        return self.operator or self.secret or self.form in OPERATOR_FORMS

    @property
    def allowed(self) -> tuple[str, ...]:
        return (*self.choices, *installed_plugins(self.plugins)) if self.plugins else self.choices

    @property
    def expected(self) -> str:
        """Describe the values that the setting accepts, for error messages."""
        some_of = "a list of" if self.kind == "list" else "one of"
        words = f"{some_of} {', '.join(self.allowed)}" if self.choices else KINDS[self.kind]
        if self.most is not None:
            words += f", at most {self.most}"
        if self.low is not None and self.high is not None:
            words += f" from {format_number(self.low)} to {format_number(self.high)}"
        return f"{words}, or null" if self.optional else words

    def read(self, raw: Scalar | Sequence[Scalar] | Mapping[str, Scalar]) -> object:
        if isinstance(raw, Scalar):
            return self.accept(self._read_scalar(raw))
        if isinstance(raw, Mapping):
            if self.kind != "weights":
                raise self._wrong("a mapping")
            return self.accept({key: _number(item, _WEIGHT) for key, item in raw.items()})
        if self.kind == "weights":
            return self.accept(",".join(_text(item, "keywords") for item in raw))
        if self.kind != "list":
            raise self._wrong("a list")
        return self.accept([_text(item, KINDS["list"]) for item in raw])

    def _read_scalar(self, raw: Scalar) -> object:
        if raw.kind == "null" and not raw.quoted:
            return None
        match self.kind:
            case "text" | "weights":
                return _text(raw, self.expected)
            case "list":
                raise self._wrong(f"{quote_value(raw.text)}: write [{raw.text}]")
            case "flag":
                word = raw.text.lower()
                if raw.quoted or word not in TRUE | FALSE:
                    raise self._wrong(quote_value(raw.text))
                return word in TRUE
            case _:
                return _number(raw, self)

    def accept(self, value: object) -> object:
        """Convert a value to the type of the setting; raise InvalidValue if it is not accepted."""
        if value is None:
            if self.optional:
                return None
            raise self._wrong("nothing (null)")
        match self.kind, value:
            case "flag", bool():
                return value
            case (("whole" | "number"), bool()):
                raise self._wrong(str(value))
            case "whole", int():
                return self._check_range(value)
            case "number", int() | float():
                return self._check_range(float(value))
            case "text", str():
                return self._check_text(value)
            case "list", list() | tuple() if all(isinstance(item, str) for item in value):
                if self.most is not None and len(value) > self.most:
                    raise self._wrong(f"{len(value):,}")
                return tuple(map(self._check_text, value))
            case "weights", str() | Mapping():
                try:
                    return parse_keywords(value) if isinstance(value, str) else checked_keywords(value.items())
                except KeywordError as wrong:
                    raise InvalidValue(str(wrong)) from None
        raise self._wrong(HIDDEN if self.secret else quote_value(value))

    def _check_range(self, value: float) -> float:
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        if not math.isfinite(value) or not low <= value <= high:
            raise self._wrong(format_number(value))
        return value

    def _check_text(self, text: str) -> str:
        if self.choices and text not in self.choices and text not in self.allowed:
            raise self._wrong(f"{quote_value(text)}{suggest_nearest(text, self.allowed)}")
        return self.form(text) if self.form else text

    def _wrong(self, got: str) -> InvalidValue:
        return InvalidValue(f"expected {self.expected}, got {got}")


def text(default: str | Callable[[], str] | None, doc: str, **more: Any) -> Any:
    return _setting("text", default, doc, more)


def flag(default: bool, doc: str) -> Any:
    return _setting("flag", default, doc, {})


def whole(default: int | None, doc: str, low: int, high: float, **more: Any) -> Any:
    return _setting("whole", default, doc, more | {"low": low, "high": high})


def number(default: float | None, doc: str, low: float, high: float) -> Any:
    return _setting("number", default, doc, {"low": low, "high": high})


def texts(doc: str, *, default: tuple[str, ...] = (), **more: Any) -> Any:
    return _setting("list", default, doc, more)


def weights(doc: str) -> Any:
    return _setting("weights", dict, doc, {})


def _setting(kind: str, default: Any, doc: str, more: Mapping[str, Any]) -> Any:
    """Return a dataclass field with the specification of a setting; if its default is None, null is usually allowed."""
    spec = SettingSpec(kind=kind, doc=doc, **{"optional": default is None, **more})
    usual: dict[str, Any] = {"default_factory" if callable(default) else "default": default}
    return field(**usual, repr=not spec.secret, metadata={"spec": spec})


def quote_value(value: object) -> str:
    """Return a value for an error message: short and on one line."""
    quoted = repr(value)
    return quoted if len(quoted) <= 60 else f"{quoted[:57]}…{quoted[-1]}"


def format_number(value: float) -> str:
    """Return a number without unnecessary decimals: 60, not 60.0."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)


def suggest_nearest(word: str, words: Sequence[str], prefix: str = "") -> str:
    """Return `; did you mean …?` with the most similar of the words, apart from a `prefix`; "" if none is similar."""
    import difflib

    close = difflib.get_close_matches(word.removeprefix(prefix), [each.removeprefix(prefix) for each in words], 1, 0.7)
    return f"; did you mean {prefix}{close[0]}?" if close else ""


def _text(raw: Scalar, expected: str) -> str:
    if raw.kind == "str" or raw.quoted:
        return raw.text
    meaning = {"bool": "true/false", "int": "a number", "float": "a number", "null": "nothing"}.get(raw.kind, "a date")
    raise InvalidValue(f'expected {expected}, got {raw.text}, which YAML reads as {meaning}: write "{raw.text}"')


def _number(raw: Scalar, spec: SettingSpec) -> float:
    typed = "" if raw.quoted else raw.text.strip()
    try:
        # Read digits as decimal; YAML 1.1 would read 010 as eight and 1:30 as ninety.
        if spec.kind == "whole" and _WHOLE.fullmatch(typed):
            return int(typed)
        if spec.kind == "number":
            return float(typed)
    except ValueError:
        pass
    raise InvalidValue(f"expected {spec.expected}, got {quote_value(raw.text)}")


_WEIGHT = SettingSpec(kind="number", doc="the weight of a keyword", low=0, high=1)
