"""What one setting may be: its kind, its range, its words, and how a wrong value is refused."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from afresh.links.score import KeywordError, checked_keywords, parse_keywords

KINDS = {
    "text": "text",
    "flag": "true or false",
    "whole": "a whole number",
    "number": "a number",
    "list": "a list of texts",
    "weights": "keywords with weights from 0 to 1, such as {budget: 1, contact: 0.5}",
}
_WHOLE = re.compile(r"[-+]?[0-9][0-9_]*")


Form: TypeAlias = Callable[[str], str]
OPERATOR_FORMS: set[Form] = set()


def operator_only(form: Form) -> Form:
    """Mark a form whose texts are paths, keys, endpoints or programs: remote callers may not set them."""
    OPERATOR_FORMS.add(form)
    return form


class WrongValue(ValueError):
    """A value that a setting does not take; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value as it was typed in a file or a variable, before the setting's kind gives it a meaning."""

    text: str
    kind: str = "str"  # what YAML takes it for: str, bool, int, float, null, timestamp …
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a file with its line; `value` is None where the key holds a mapping or nothing."""

    path: tuple[str, ...]
    value: Scalar | list[Scalar] | None
    line: int
    is_mapping: bool = False
    items: Mapping[str, Scalar] | None = None  # of a mapping of plain values


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The promise of one setting."""

    kind: str
    doc: str
    low: float | None = None
    high: float | None = None
    most: int | None = None  # texts of a list
    choices: tuple[str, ...] = ()
    optional: bool = False
    secret: bool = False
    form: Form | None = None  # checks and normalises one text; raises WrongValue
    operator: bool = False  # it names a path, a key, an endpoint or a program, and its form does not tell

    @property
    def is_operator_only(self) -> bool:
        """Whether only the settings file, the environment and flags may set it, never a source's own row."""
        return self.operator or self.secret or self.form in OPERATOR_FORMS

    @property
    def expected(self) -> str:
        """The sentence part that says what the setting takes."""
        words = f"one of {', '.join(self.choices)}" if self.choices else KINDS[self.kind]
        if self.most is not None:
            words += f", {self.most} at most"
        if self.low is not None and self.high is not None:
            words += f" from {plain(self.low)} to {plain(self.high)}"
        return f"{words}, or null" if self.optional else words

    def read(self, raw: Scalar | Sequence[Scalar] | Mapping[str, Scalar]) -> object:
        """The value that a typed text means for this setting."""
        if isinstance(raw, Scalar):
            return self._read_one(raw)
        if isinstance(raw, Mapping):
            if self.kind != "weights":
                raise WrongValue(f"expected {self.expected}, got a mapping")
            return self.accept({key: _number(item, _WEIGHT) for key, item in raw.items()})
        if self.kind == "weights":
            return self.accept(",".join(_text(item, "keywords") for item in raw))
        if self.kind != "list":
            raise WrongValue(f"expected {self.expected}, got a list")
        return self.accept([_text(item, "a list of texts") for item in raw])

    def _read_one(self, raw: Scalar) -> object:
        if raw.kind == "null" and not raw.quoted:
            return self.accept(None)
        if self.kind in ("text", "weights"):
            return self.accept(_text(raw, self.expected))
        if self.kind == "flag":
            return self.accept(_flag(raw, self.expected))
        if self.kind == "list":
            raise WrongValue(f"expected {self.expected}, got {shown(raw.text)}: write [{raw.text}]")
        return self.accept(_number(raw, self))

    def accept(self, value: object) -> object:
        """The value itself if the setting takes it, in the setting's own type."""
        if value is None:
            if self.optional:
                return None
            raise WrongValue(f"expected {self.expected}, got nothing (null)")
        match self.kind, value:
            case "flag", bool():
                return value
            case (("whole" | "number"), bool()):
                raise WrongValue(f"expected {self.expected}, got {value}")
            case "whole", int():
                return int(self._in_range(value))
            case "number", int() | float():
                return float(self._in_range(float(value)))
            case "text", str():
                return self._formed(value)
            case "list", list() | tuple() if all(isinstance(item, str) for item in value):
                if self.most is not None and len(value) > self.most:
                    raise WrongValue(f"expected {self.expected}, got {len(value):,}")
                return tuple(self._formed(item) for item in value)
            case "weights", str() | Mapping():
                return _weights(value)
        raise WrongValue(f"expected {self.expected}, got {self._shown(value)}")

    def _in_range(self, value: float) -> float:
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        if not math.isfinite(value) or not low <= value <= high:
            raise WrongValue(f"expected {self.expected}, got {plain(value)}")
        return value

    def _formed(self, text: str) -> str:
        if self.choices and text not in self.choices:
            raise WrongValue(
                f"expected {self.expected}, got {self._shown(text)}{nearest(text, self.choices)}"
            )
        return self.form(text) if self.form else text

    def _shown(self, value: object) -> str:
        return "a value that is kept secret" if self.secret else shown(value)


def setting(default: object, spec: Spec) -> Any:
    """A dataclass field that carries its spec."""
    return field(default=default, metadata={"spec": spec})


def text(default: str | None, doc: str, **more: Any) -> Any:
    """A setting that is a text."""
    return setting(default, Spec(kind="text", doc=doc, **more))


def flag(default: bool, doc: str) -> Any:
    """A setting that is true or false."""
    return setting(default, Spec(kind="flag", doc=doc))


def whole(default: int | None, doc: str, low: int, high: float, **more: Any) -> Any:
    """A setting that is a whole number within bounds."""
    return setting(default, Spec(kind="whole", doc=doc, low=low, high=high, **more))


def number(default: float | None, doc: str, low: float, high: float, **more: Any) -> Any:
    """A setting that is a number within bounds."""
    return setting(default, Spec(kind="number", doc=doc, low=low, high=high, **more))


def texts(doc: str, **more: Any) -> Any:
    """A setting that is a list of texts, empty by default."""
    return setting((), Spec(kind="list", doc=doc, **more))


def weights(doc: str) -> Any:
    """A setting that maps keywords to weights, none by default."""
    return field(default_factory=dict, metadata={"spec": Spec(kind="weights", doc=doc)})


def shown(value: object) -> str:
    """A value as an error may quote it: short and on one line."""
    quoted = repr(value)
    return quoted if len(quoted) <= 60 else f"{quoted[:57]}…{quoted[-1]}"


def plain(value: float) -> str:
    """A number the way people write it: 60, not 60.0."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)


def nearest(word: str, words: Sequence[str]) -> str:
    """`; did you mean …?` when one of the words is close, else nothing."""
    import difflib

    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def _weights(value: str | Mapping[Any, Any]) -> dict[str, float]:
    try:
        return parse_keywords(value) if isinstance(value, str) else checked_keywords(value.items())
    except KeywordError as wrong:
        raise WrongValue(str(wrong)) from None


def _text(raw: Scalar, expected: str) -> str:
    if raw.kind == "str" or raw.quoted:
        return raw.text
    meaning = {"bool": "true/false", "int": "a number", "float": "a number", "null": "nothing"}.get(
        raw.kind, "a date"
    )
    raise WrongValue(
        f'expected {expected}, got {raw.text}, which YAML reads as {meaning}: write "{raw.text}"'
    )


def _flag(raw: Scalar, expected: str) -> bool:
    word = raw.text.lower()
    if raw.quoted or word not in {"true", "yes", "on", "1", "false", "no", "off", "0"}:
        raise WrongValue(f"expected {expected}, got {shown(raw.text)}")
    return word in {"true", "yes", "on", "1"}


def _number(raw: Scalar, spec: Spec) -> float:
    typed = "" if raw.quoted else raw.text.strip()
    try:
        # YAML 1.1 would read 010 as eight and 1:30 as ninety; here digits mean what they show.
        if spec.kind == "whole" and _WHOLE.fullmatch(typed):
            return int(typed)
        if spec.kind == "number":
            return float(typed)
    except ValueError:
        pass
    raise WrongValue(f"expected {spec.expected}, got {shown(raw.text)}")


_WEIGHT = Spec(kind="number", doc="the weight of a keyword", low=0, high=1)
