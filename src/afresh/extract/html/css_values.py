"""Numbers, lengths, angles and colours of CSS, as far as they can be told without a browser."""

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

MAX_TOKENS = 400
MAX_NESTED_CALLS = 20

PX: Mapping[str, float] = {
    "": 1.0, "px": 1.0, "em": 16.0, "rem": 16.0, "ex": 8.0, "ch": 8.0, "pt": 1.33, "pc": 16.0, "cm": 37.8,
    "mm": 3.78, "in": 96.0, "q": 0.94, "vw": 12.8, "vh": 8.0, "vmin": 8.0, "vmax": 12.8, "%": 12.8,
    "lh": 20.0, "rlh": 20.0, "cap": 11.0, "ic": 16.0, "vi": 12.8, "vb": 8.0, "svw": 12.8, "svh": 8.0,
    "lvw": 12.8, "lvh": 8.0, "dvw": 12.8, "dvh": 8.0, "cqw": 12.8, "cqh": 8.0, "cqi": 12.8, "cqb": 8.0,
}  # fmt: skip
_SHARE: Mapping[str, float] = {"": 1.0, "%": 0.01}
_DEGREES: Mapping[str, float] = {"": 1.0, "deg": 1.0, "turn": 360.0, "rad": 180 / math.pi, "grad": 0.9}
_TOKEN = re.compile(
    r"\s*+(?:(?P<number>(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d{1,3}(?![a-z]))?)(?P<unit>%|[a-z]*+)"
    r"|(?P<name>[a-z][-a-z0-9]*+)?(?P<open>\()|(?P<word>[a-z]++)|(?P<sign>[-+*/(),]))"
)
_CONSTANTS = {"pi": math.pi, "e": math.e, "infinity": 1e9, "nan": 0.0}
_WORD = re.compile(r"[-+.#%\w]+")
_NAMED = {
    "white": "fff", "black": "000", "snow": "fffafa", "ivory": "fffff0", "ghostwhite": "f8f8ff",
    "whitesmoke": "f5f5f5", "floralwhite": "fffaf0", "mintcream": "f5fffa", "azure": "f0ffff",
    "canvas": "fff", "field": "fff", "window": "fff", "canvastext": "000", "windowtext": "000",
}  # fmt: skip
_SAME_COLOUR = 12  # of 255, in every channel
_FAINT = 0.1


class Colour(NamedTuple):
    """A colour with its opacity from 0 to 1."""

    red: float
    green: float
    blue: float
    alpha: float = 1.0

    def is_like(self, other: "Colour") -> bool:
        """Return whether nobody can tell the one on the other."""
        pairs = zip(self[:3], other[:3], strict=True)
        return all(abs(one - two) <= _SAME_COLOUR for one, two in pairs)


WHITE = Colour(255, 255, 255)


def px_of(value: str | None) -> float | None:
    """Return a length in pixels; None for one that is not understood."""
    return _evaluate(value, PX)


def share_of(value: str | None) -> float:
    """Return a number or a percentage as a number; 1 for what is neither."""
    found = _evaluate(value, _SHARE)
    return 1.0 if found is None else found


def degrees_of(value: str | None) -> float | None:
    """Return an angle in degrees; None for one that is not understood."""
    return _evaluate(value, _DEGREES)


def _evaluate(value: str | None, units: Mapping[str, float]) -> float | None:
    if not value:
        return None
    try:
        reader = _Reader(value.strip(), units)
        found = reader.sum()
    except (ValueError, ArithmeticError):
        return None
    return found if reader.at_end() and math.isfinite(found) else None


class _Reader:
    """Reads a number, or a sum of `calc()`, `min()`, `max()` and `clamp()`; raises ValueError for all else."""

    def __init__(self, text: str, units: Mapping[str, float]) -> None:
        self._units = units
        self._tokens: list[re.Match[str]] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None or len(self._tokens) >= MAX_TOKENS:
                raise ValueError(text)
            self._tokens.append(found)
            at = found.end()
        self._at = 0
        self._depth = 0

    def at_end(self) -> bool:
        return self._at >= len(self._tokens)

    def sum(self) -> float:
        total = self._product()
        while (sign := self._sign("+-")) is not None:
            other = self._product()
            total = total + other if sign == "+" else total - other
        return total

    def _product(self) -> float:
        total = self._value()
        while (sign := self._sign("*/")) is not None:
            other = self._value()
            total = total * other if sign == "*" else total / other
        return total

    def _value(self) -> float:
        sign = 1.0
        while (found := self._sign("+-")) is not None:
            sign = -sign if found == "-" else sign
        if self.at_end():
            raise ValueError
        token = self._tokens[self._at]
        self._at += 1
        if token["number"]:
            if token["unit"] not in self._units:
                raise ValueError
            return sign * float(token["number"]) * self._units[token["unit"]]
        if token["open"]:
            return sign * self._call(token["name"] or "calc")
        if token["word"] in _CONSTANTS:
            return sign * _CONSTANTS[token["word"]]
        raise ValueError

    def _call(self, name: str) -> float:
        self._depth += 1
        if self._depth > MAX_NESTED_CALLS:
            raise ValueError
        parts = [self.sum()]
        while self._sign(",") is not None:
            parts.append(self.sum())
        if not self.at_end() and self._sign(")") is None:  # what is never closed ends with the value
            raise ValueError
        self._depth -= 1
        return _result(name, parts)

    def _sign(self, signs: str) -> str | None:
        if self.at_end() or (self._tokens[self._at]["sign"] or "x") not in signs:
            return None
        self._at += 1
        return self._tokens[self._at - 1]["sign"]


def _result(name: str, parts: list[float]) -> float:
    match name, parts:
        case (("calc" | "-webkit-calc"), [one]):
            return one
        case "min", _:
            return min(parts)
        case "max", _:
            return max(parts)
        case "clamp", [least, wanted, most]:
            return max(least, min(wanted, most))
        case "abs", [one]:
            return abs(one)
        case "sign", [one]:
            return math.copysign(1.0, one) if one else 0.0
        case (("mod" | "rem"), [one, two]):
            return math.fmod(one, two)
        case "round", [one, two]:
            return round(one / two) * two
        case "round", [one]:
            return float(round(one))
        case "pow", [one, two]:
            return float(math.pow(one, two))
        case "sqrt", [one]:
            return math.sqrt(one)
        case "hypot", _:
            return math.hypot(*parts)
        case (("sin" | "cos" | "tan"), [one]):
            return float(getattr(math, name)(one))
    raise ValueError


def colour_of(value: str) -> Colour | None:
    """Return the colour of a value; None for one that is not understood."""
    value = value.strip()
    if value == "transparent":
        return Colour(0, 0, 0, 0)
    name, bracket, inside = value.partition("(")
    if bracket:
        return _called_colour(name, inside.rstrip(") "))
    digits = _NAMED.get(value, value[1:] if value.startswith("#") else "")
    if len(digits) in (3, 4):
        digits = "".join(digit * 2 for digit in digits)
    if len(digits) not in (6, 8) or not re.fullmatch(r"[0-9a-f]+", digits):
        return None
    red, green, blue = (int(digits[at : at + 2], 16) for at in (0, 2, 4))
    return Colour(red, green, blue, int(digits[6:], 16) / 255 if len(digits) == 8 else 1.0)


def _called_colour(name: str, inside: str) -> Colour | None:
    if name == "light-dark":
        return colour_of(inside.partition(",")[0])
    if name == "color-mix":
        mixed = [colour_of(_without_share(each)) for each in inside.split(",")[1:]]
        same = mixed[0] is not None and all(each is not None and each.is_like(mixed[0]) for each in mixed)
        return mixed[0] if same else None
    body, slash, after = inside.partition("/")
    parts = ["0" if part == "none" else part for part in _WORD.findall(body)]
    if name == "color":
        parts = parts[1:]
    alpha = 1.0
    if slash:
        alpha = share_of(after.strip().replace("none", "0"))
    elif len(parts) > 3 and name in ("rgb", "rgba", "hsl", "hsla"):
        alpha = share_of(parts[3])
    if alpha < _FAINT:
        return Colour(0, 0, 0, alpha)
    channels = _channels(name, parts[:3]) if len(parts) >= 3 else None
    return Colour(*channels, alpha) if channels is not None else None


def _channels(name: str, parts: list[str]) -> tuple[float, float, float] | None:
    """Return red, green and blue from 0 to 255; where a hue decides, only of what has none."""
    if any(degrees_of(part) is None and not part.endswith("%") for part in parts):
        return None
    first, second, third = parts
    match name:
        case "rgb" | "rgba":
            red, green, blue = (share_of(part) * (255 if part.endswith("%") else 1) for part in parts)
            return red, green, blue
        case "color":
            red, green, blue = (max(0.0, min(1.0, share_of(part))) * 255 for part in parts)
            return red, green, blue
        case "hsl" | "hsla":
            light = share_of(third) / (1 if third.endswith("%") else 100)
            colourless = share_of(second) == 0
        case "hwb":
            white, black = (share_of(part) / (1 if part.endswith("%") else 100) for part in (second, third))
            light, colourless = white / max(1e-9, white + black), white + black >= 1
        case "oklch" | "oklab" | "lch" | "lab":
            full = 1 if name.startswith("ok") or first.endswith("%") else 100
            light = share_of(first) / full
            light = light if name.startswith("ok") else light**1.1
            near = 0.01 if name.startswith("ok") else 2.0
            colourless = abs(share_of(second)) <= near and (
                name.endswith("lch") or abs(share_of(third)) <= near
            )
            if name.startswith("ok") and colourless:
                light = _encoded(light**3)
        case _:
            return None
    light = max(0.0, min(1.0, light))
    return (255 * light,) * 3 if colourless or light >= 0.97 or light <= 0.03 else None


def _encoded(linear: float) -> float:
    linear = max(0.0, linear)
    return 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055


def _without_share(text: str) -> str:
    """Return a colour of `color-mix()` without how much of it is taken: `red 30%` is `red`."""
    *colour, last = text.split() or [""]
    return " ".join(colour) if colour and last.endswith("%") else text
