"""The specification of a setting: its type, range, choices, and the errors for invalid values."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from afresh.links.score import KeywordError, checked_keywords, parse_keywords
from afresh.plugins import installed_plugins

KINDS = {
    "text": "text",
    "flag": "true or false",
    "whole": "a whole number",
    "number": "a number",
    "list": "a list of texts",
    "weights": "keywords with weights from 0 to 1, such as {budget: 1, contact: 0.5}",
}
TRUE = frozenset({"true", "yes", "on", "1"})
FALSE = frozenset({"false", "no", "off", "0"})
_WHOLE = re.compile(r"[-+]?[0-9][0-9_]*")


Form: TypeAlias = Callable[[str], str]
OPERATOR_FORMS: set[Form] = set()


def operator_only(form: Form) -> Form:
    """Mark a form of paths, keys, endpoints or programs: remote callers may not set them."""
    OPERATOR_FORMS.add(form)
    return form


class InvalidValue(ValueError):
    """A value that a setting does not accept; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value as typed in a file or variable, before it gets its type."""

    text: str
    kind: str = "str"  # the type in YAML: str, bool, int, float, null, timestamp …
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A key of a file with its line; `value` is None if the key holds a mapping or nothing."""

    path: tuple[str, ...]
    value: Scalar | list[Scalar] | None
    line: int
    is_mapping: bool = False
    items: Mapping[str, Scalar] | None = None  # of a mapping with plain values


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSpec:
    """The specification of one setting."""

    kind: str
    doc: str
    low: float | None = None
    high: float | None = None
    most: int | None = None  # items of a list at most
    choices: tuple[str, ...] = ()
    plugins: str = ""  # entry point group whose names are choices, too
    optional: bool = False
    secret: bool = False
    form: Form | None = None  # checks and normalises a text; raises InvalidValue
    operator: bool = False  # names a path, a key, an endpoint or a program, and has no operator-only form

    @property
    def is_operator_only(self) -> bool:
        """Return whether only file, environment and flags may set it, never a source."""
        return self.operator or self.secret or self.form in OPERATOR_FORMS

    @property
    def allowed(self) -> tuple[str, ...]:
        """Return the choices, with those of installed plugins."""
        return (*self.choices, *installed_plugins(self.plugins)) if self.plugins else self.choices

    @property
    def expected(self) -> str:
        """Return the part of an error message that says what the setting accepts."""
        words = f"one of {', '.join(self.allowed)}" if self.choices else KINDS[self.kind]
        if self.most is not None:
            words += f", {self.most} at most"
        if self.low is not None and self.high is not None:
            words += f" from {plain(self.low)} to {plain(self.high)}"
        return f"{words}, or null" if self.optional else words

    def read(self, raw: Scalar | Sequence[Scalar] | Mapping[str, Scalar]) -> object:
        """Return the value of a typed text for this setting."""
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
        return self.accept([_text(item, "a list of texts") for item in raw])

    def _read_scalar(self, raw: Scalar) -> object:
        if raw.kind == "null" and not raw.quoted:
            return None
        match self.kind:
            case "text" | "weights":
                return _text(raw, self.expected)
            case "list":
                raise self._wrong(f"{shown(raw.text)}: write [{raw.text}]")
            case "flag":
                word = raw.text.lower()
                if raw.quoted or word not in TRUE | FALSE:
                    raise self._wrong(shown(raw.text))
                return word in TRUE
            case _:
                return _number(raw, self)

    def accept(self, value: object) -> object:
        """Return the value in the type of the setting; raise InvalidValue if it is not accepted."""
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
                return self._in_range(value)
            case "number", int() | float():
                return self._in_range(float(value))
            case "text", str():
                return self._formed(value)
            case "list", list() | tuple() if all(isinstance(item, str) for item in value):
                if self.most is not None and len(value) > self.most:
                    raise self._wrong(f"{len(value):,}")
                return tuple(self._formed(item) for item in value)
            case "weights", str() | Mapping():
                try:
                    return (
                        parse_keywords(value) if isinstance(value, str) else checked_keywords(value.items())
                    )
                except KeywordError as wrong:
                    raise InvalidValue(str(wrong)) from None
        raise self._wrong(self._shown(value))

    def _in_range(self, value: float) -> float:
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        if not math.isfinite(value) or not low <= value <= high:
            raise self._wrong(plain(value))
        return value

    def _formed(self, text: str) -> str:
        if self.choices and text not in self.choices and text not in self.allowed:
            raise self._wrong(f"{self._shown(text)}{nearest(text, self.allowed)}")
        return self.form(text) if self.form else text

    def _shown(self, value: object) -> str:
        return "a value that is kept secret" if self.secret else shown(value)

    def _wrong(self, got: str) -> InvalidValue:
        return InvalidValue(f"expected {self.expected}, got {got}")


def text(default: str | None, doc: str, *, optional: bool | None = None, **more: Any) -> Any:
    """Return a text setting; without a default it may be null."""
    return _setting("text", default, doc, optional, more)


def flag(default: bool, doc: str) -> Any:
    """Return a boolean setting."""
    return _setting("flag", default, doc, None, {})


def whole(default: int | None, doc: str, low: int, high: float, *, optional: bool | None = None) -> Any:
    """Return an integer setting with bounds."""
    return _setting("whole", default, doc, optional, {"low": low, "high": high})


def number(default: float | None, doc: str, low: float, high: float) -> Any:
    """Return a number setting with bounds."""
    return _setting("number", default, doc, None, {"low": low, "high": high})


def texts(doc: str, *, default: tuple[str, ...] = (), **more: Any) -> Any:
    """Return a setting with a list of texts."""
    return _setting("list", default, doc, None, more)


def weights(doc: str) -> Any:
    """Return a setting that maps keywords to weights, by default none."""
    return field(default_factory=dict, metadata={"spec": SettingSpec(kind="weights", doc=doc)})


def _setting(kind: str, default: object, doc: str, optional: bool | None, more: Mapping[str, Any]) -> Any:
    may_be_null = default is None if optional is None else optional
    return field(
        default=default, metadata={"spec": SettingSpec(kind=kind, doc=doc, optional=may_be_null, **more)}
    )


def shown(value: object) -> str:
    """Return a value for an error message: short and on one line."""
    quoted = repr(value)
    return quoted if len(quoted) <= 60 else f"{quoted[:57]}…{quoted[-1]}"


def plain(value: float) -> str:
    """Return a number without needless decimals: 60, not 60.0."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)


def nearest(word: str, words: Sequence[str]) -> str:
    """Return `; did you mean …?` if one of the words is close, else an empty text."""
    import difflib

    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def _text(raw: Scalar, expected: str) -> str:
    if raw.kind == "str" or raw.quoted:
        return raw.text
    meaning = {"bool": "true/false", "int": "a number", "float": "a number", "null": "nothing"}.get(
        raw.kind, "a date"
    )
    raise InvalidValue(
        f'expected {expected}, got {raw.text}, which YAML reads as {meaning}: write "{raw.text}"'
    )


def _number(raw: Scalar, spec: SettingSpec) -> float:
    typed = "" if raw.quoted else raw.text.strip()
    try:
        # YAML 1.1 would read 010 as eight and 1:30 as ninety; here they are decimal digits.
        if spec.kind == "whole" and _WHOLE.fullmatch(typed):
            return int(typed)
        if spec.kind == "number":
            return float(typed)
    except ValueError:
        pass
    raise InvalidValue(f"expected {spec.expected}, got {shown(raw.text)}")


_WEIGHT = SettingSpec(kind="number", doc="the weight of a keyword", low=0, high=1)
