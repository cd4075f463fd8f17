"""Decide from the style of an element whether it is hidden from a reader, and by which property."""

import math
import re
from collections.abc import Callable, Mapping
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
_SHARE_OF_COLOUR = re.compile(r"(?<=\S)\s++\S*%\s*+$")  # `red 30%` in `color-mix()`
_SAME_COLOUR = 12  # maximum difference of two similar colours in each channel, of 255


class Colour(NamedTuple):
    """A colour and its opacity from 0 to 1."""

    red: float
    green: float
    blue: float
    alpha: float = 1.0

    def is_like(self, other: "Colour") -> bool:
        return all(abs(one - two) <= _SAME_COLOUR for one, two in zip(self[:3], other[:3], strict=True))


WHITE = Colour(255, 255, 255)


def share_of(value: str | None) -> float:
    """Parse a number or a percentage such as an opacity; return 1 for other values."""
    found = px_of(value, _SHARE)
    return 1.0 if found is None else found


def px_of(value: str | None, units: Mapping[str, float] = PX) -> float | None:
    """Parse a length; return it in pixels (or in the base unit of `units`), or None if it is not supported."""
    if not value:
        return None
    try:
        reader = _Reader(value.strip(), units)
        found = reader.sum()
    except (ValueError, LookupError, ArithmeticError):
        return None
    return found if reader.at_end() and math.isfinite(found) else None


class _Reader:
    """Evaluates a number or an expression with functions such as `calc()` and `min()`; other texts raise an error."""

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
        while sign := self._sign("+-"):
            total += self._product() * (1 if sign == "+" else -1)
        return total

    def _product(self) -> float:
        total = self._value()
        while sign := self._sign("*/"):
            other = self._value()
            total = total * other if sign == "*" else total / other
        return total

    def _value(self) -> float:
        sign = 1.0
        while found := self._sign("+-"):
            sign = -sign if found == "-" else sign
        token = self._tokens[self._at]
        self._at += 1
        if token["number"]:
            return sign * float(token["number"]) * self._units[token["unit"]]
        if token["open"]:
            return sign * self._call(token["name"] or "calc")
        return sign * _CONSTANTS[token["word"]]

    def _call(self, name: str) -> float:
        self._depth += 1
        if self._depth > MAX_NESTED_CALLS:
            raise ValueError
        parts = [self.sum()]
        while self._sign(","):
            parts.append(self.sum())
        if not self.at_end() and not self._sign(")"):  # a missing parenthesis at the end is allowed
            raise ValueError
        self._depth -= 1
        call = _CALLS.get((name, _ANY_NUMBER)) or _CALLS[name, len(parts)]
        return float(call(*parts))

    def _sign(self, signs: str) -> str:
        sign = "" if self.at_end() else self._tokens[self._at]["sign"] or ""
        self._at += sign != "" and sign in signs
        return sign if sign in signs else ""


_ANY_NUMBER = 0
_CALLS: Mapping[tuple[str, int], Callable[..., float]] = {  # by name and number of arguments
    ("calc", 1): float, ("-webkit-calc", 1): float, ("abs", 1): abs, ("sqrt", 1): math.sqrt,
    ("sin", 1): math.sin, ("cos", 1): math.cos, ("tan", 1): math.tan, ("pow", 2): math.pow,
    ("mod", 2): math.fmod, ("rem", 2): math.fmod, ("hypot", _ANY_NUMBER): math.hypot,
    ("sign", 1): lambda one: math.copysign(1.0, one) if one else 0.0,
    ("round", 1): round, ("round", 2): lambda one, two: round(one / two) * two,
    ("min", _ANY_NUMBER): lambda *parts: min(parts), ("max", _ANY_NUMBER): lambda *parts: max(parts),
    ("clamp", 3): lambda least, wanted, most: max(least, min(wanted, most)),
}  # fmt: skip


def colour_of(value: str) -> Colour | None:
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
    red, green, blue, *alpha = bytes.fromhex(digits)
    return Colour(red, green, blue, alpha[0] / 255 if alpha else 1.0)


def _called_colour(name: str, inside: str) -> Colour | None:
    if name == "light-dark":
        return colour_of(inside.partition(",")[0])
    if name == "color-mix":
        mixed = [colour_of(_SHARE_OF_COLOUR.sub("", each)) for each in inside.split(",")[1:]]
        first = mixed[0]
        return first if first and all(each is not None and each.is_like(first) for each in mixed) else None
    body, slash, after = inside.partition("/")
    parts = ["0" if part == "none" else part for part in _WORD.findall(body)][name == "color" :]
    alpha = share_of(after.strip().replace("none", "0")) if slash else 1.0
    if not slash and len(parts) > 3 and name in ("rgb", "rgba", "hsl", "hsla"):
        alpha = share_of(parts[3])
    if alpha < FAINT:
        return Colour(0, 0, 0, alpha)
    channels = _channels(name, parts[:3]) if len(parts) >= 3 else None
    return Colour(*channels, alpha) if channels is not None else None


def _channels(name: str, parts: list[str]) -> tuple[float, float, float] | None:
    """Return red, green and blue from 0 to 255, or None; hue-based notations are supported only for greys."""
    if any(px_of(part, _DEGREES) is None and not part.endswith("%") for part in parts):
        return None
    first, second, third = parts
    match name:
        case "rgb" | "rgba":
            red, green, blue = (share_of(part) * (255 if part.endswith("%") else 1) for part in parts)
            return red, green, blue
        case "color":
            red, green, blue = (255 * max(0.0, min(1.0, share_of(part))) for part in parts)
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
            colourless = abs(share_of(second)) <= near and (name.endswith("lch") or abs(share_of(third)) <= near)
            if name.startswith("ok") and colourless:
                linear = max(0.0, light**3)
                light = 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055
        case _:
            return None
    light = max(0.0, min(1.0, light))
    return (255 * light,) * 3 if colourless or light >= 0.97 or light <= 0.03 else None


Style = Mapping[str, str]  # the values of one element, by property

FAR_PX = 500.0  # an element shifted by more is off the screen
TINY_FONT_PX = 2.0
TINY_PX = 1.0
FAINT = 0.1

_CALL = re.compile(r"(?<![-\w])([-\w]++)\(([^()]*+)\)")
_FONT_SIZE = re.compile(
    r"(?:^|\s)((?:\d++\.?\d*+|\.\d++)(?:px|em|rem|pt|%)?|(?:calc|min|max|clamp)\((?:[^()/]|\([^()/]{0,100}+\)){1,100}+\))(?:\s?/\s?\S++)?\s\S"
)
_DISPLAYS = re.compile(
    r"(?:none|contents|block|inline|flow|flow-root|flex|grid|table|list-item|ruby|math|run-in|inherit|initial|unset|revert"
    r"|revert-layer|-webkit-box|-webkit-flex|-ms-flexbox)(?:[- ].{0,30})?"
)
_VISIBILITIES = frozenset({"visible", "hidden", "collapse", "inherit", "initial", "unset", "revert", "revert-layer"})
_NUMERIC = frozenset({"opacity", "font-size", "width", "height", "max-height", "max-width", "text-indent"})
_CLIPPED = frozenset({"hidden", "clip", "scroll", "auto"})
_CONTAINED = frozenset({"size", "strict"})
_GIVEN_SIZES = frozenset({"height", "min-height", "aspect-ratio", "contain-intrinsic-size", "contain-intrinsic-height"})
_INSETS = ("left", "top", "right", "bottom", "inset", "inset-inline", "inset-block")
_SHIFTS = ("margin-left", "margin-top", "margin", "margin-inline", "margin-block", "text-indent", "translate")
_MASKS = ("mask", "mask-image", "-webkit-mask", "-webkit-mask-image")
_WORDS = re.compile(r"[-+.%\w]*\((?:[^()]|\([^()]*\))*\)|[^\s()]+")
_DRAWN = re.compile(r"\bpath\((?:\s*(?:nonzero|evenodd)\s*,)?\s*[\"']([^\"']*)")
_SUMS = re.compile(r"\b(?:calc|min|max|clamp|abs)\([^()]*\)")
_DIRECTION = re.compile(r"(?:to |circle|ellipse).*|-?[\d.]+(?:deg|turn|rad)", re.DOTALL)
_PATH_PART = re.compile(r"([a-z])([^a-df-z]*)", re.IGNORECASE)
_PATH_NUMBER = re.compile(r"[-+]?(?:\d++\.?\d*+|\.\d++)(?:e[-+]?\d{1,3})?", re.IGNORECASE)


class HiddenBy(NamedTuple):
    by: str  # the property that hides the element
    switched: bool = False  # scripts use this property for elements that a reader can open
    inherited: bool = False  # inner elements may be visible again


def is_valid(name: str, value: str) -> bool:
    """Return whether a browser accepts a value for a property; browsers ignore invalid declarations."""
    if "var(" in value:
        return True
    if name == "display":
        return _DISPLAYS.fullmatch(value) is not None
    if name == "visibility":
        return value in _VISIBILITIES
    return name not in _NUMERIC or value[:1].isalnum() or value[:1] in "+-."


def hidden_by(style: Style) -> HiddenBy | None:
    if not style:
        return None
    if style.get("display") == "none":
        return HiddenBy("display", switched=True)
    if style.get("visibility") in ("hidden", "collapse"):
        return HiddenBy("visibility", switched=True, inherited=True)
    if style.get("content-visibility") == "hidden":
        return HiddenBy("content-visibility", switched=True)
    size = font_size(style)
    if size is not None and size <= TINY_FONT_PX:
        return HiddenBy("font-size", inherited=True)
    if (spacing := px_of(style.get("letter-spacing"))) is not None and spacing <= -12:
        return HiddenBy("letter-spacing", inherited=True)
    for hides, name, properties in _TESTS:
        if not properties.isdisjoint(style) and hides(style):
            return HiddenBy(name, switched=name == "size")
    return None


def font_size(style: Style) -> float | None:
    """Return the font size in pixels; None if the style does not set it."""
    if "font-size" in style:
        return px_of(style["font-size"])
    found = _FONT_SIZE.search(style.get("font", ""))
    return px_of(found[1]) if found else None


def text_colour(style: Style) -> Colour | None:
    return colour_of(style.get("-webkit-text-fill-color") or style.get("color") or "")


def background_of(style: Style) -> Colour | None:
    for name in ("background-color", "background"):
        for word in re.findall(r"[-#\w]+(?:\([^()]*\))?", style.get(name, "")[:500]):
            colour = colour_of(word)
            if colour is not None and colour.alpha > 0.9:
                return colour
    return None


def _is_transparent(style: Style) -> bool:
    if "opacity" in style and share_of(style["opacity"]) < FAINT:
        return True
    filters = style.get("filter") or style.get("-webkit-filter") or ""
    if any(name == "opacity" and share_of(value) < FAINT for name, value in _CALL.findall(filters)):
        return True
    colour = text_colour(style)
    clipped = "text" in (style.get("background-clip") or style.get("-webkit-background-clip") or "")
    return colour is not None and colour.alpha < FAINT and not clipped and "text-shadow" not in style


def _is_off_screen(style: Style) -> bool:
    placed = style.get("position") in ("absolute", "fixed", "relative")
    for name in (*(_INSETS if placed else ()), *_SHIFTS):
        values = [px_of(part) for part in _WORDS.findall(style.get(name, ""))]
        if any(value is not None and (value <= -FAR_PX or value >= 3 * FAR_PX) for value in values):
            return True
    clipped = style.get("overflow", "").startswith("hidden")
    return clipped and (px_of(style.get("text-indent")) or 0) >= FAR_PX


def _is_without_size(style: Style) -> bool:
    overflow = " ".join(style.get(name, "") for name in ("overflow", "overflow-x", "overflow-y"))
    contain = style.get("contain", "").split()
    if _CLIPPED.isdisjoint(overflow.split()) and "strict" not in contain:
        return False
    sizes = (px_of(style.get(name)) for name in ("width", "height", "max-width", "max-height", "line-height"))
    if any(size is not None and size <= TINY_PX for size in sizes):
        return True
    return not _CONTAINED.isdisjoint(contain) and _GIVEN_SIZES.isdisjoint(style)


def _is_clipped(style: Style) -> bool:
    for name, value in _CALL.findall(style.get("clip", "")):
        sides = [px_of(part) for part in value.replace(",", " ").split()]
        if name == "rect" and len(sides) == 4 and None not in sides:
            return _is_flat(name, sides)
    path = style.get("clip-path") or style.get("-webkit-clip-path") or ""
    if drawn := _DRAWN.search(path):
        return _encloses_nothing(drawn[1])
    return any(_leaves_nothing(name, value) for name, value in _CALL.findall(path))


def _is_flat(name: str, sides: list[float | None]) -> bool:
    one, two, three, four = (side or 0.0 for side in sides)
    high, wide = (three, four) if name == "xywh" else (three - one, two - four)
    return high <= TINY_PX or wide <= TINY_PX


def _encloses_nothing(path: str) -> bool:
    """Return whether a `clip-path` path encloses no area, judged by its points; False for a path with arcs."""
    across: list[float] = []
    down: list[float] = []
    here = (0.0, 0.0)
    for command, text in _PATH_PART.findall(path[:2_000]):
        numbers = [float(each) for each in _PATH_NUMBER.findall(text)]
        if command in "aA":
            return False
        begin = here if command.islower() else (0.0, 0.0)
        if command in "hH":
            points = [(begin[0] + number, here[1]) for number in numbers]
        elif command in "vV":
            points = [(here[0], begin[1] + number) for number in numbers]
        else:
            points = [(begin[0] + x, begin[1] + y) for x, y in zip(numbers[::2], numbers[1::2], strict=False)]
        here = points[-1] if points else here
        across += [max(0.0, x) for x, _ in points]
        down += [max(0.0, y) for _, y in points]
    return not across or max(across) - min(across) <= TINY_PX or max(down) - min(down) <= TINY_PX


def _leaves_nothing(name: str, value: str) -> bool:
    parts = value.partition(" round ")[0].split()
    if name == "inset" and parts:
        shares = [share_of(part) if part.endswith("%") else (px_of(part) or 0) / 1000 for part in parts[:4]]
        right = shares[1 % len(shares)]
        bottom, left = shares[2] if len(shares) > 2 else shares[0], shares[3] if len(shares) > 3 else right
        return shares[0] + bottom >= 1 or right + left >= 1
    if name in ("rect", "xywh"):
        sides = [px_of(part) for part in parts[:4]]
        return len(sides) == 4 and None not in sides and _is_flat(name, sides)
    if name in ("circle", "ellipse"):
        radius = px_of(parts[0]) if parts else None
        return radius is not None and radius <= TINY_PX
    if name == "polygon":
        points = [point.split() for point in value.split(",")]
        across, down = {point[0] for point in points if point}, {point[-1] for point in points if point}
        return len(across) <= 1 or len(down) <= 1
    return False


def _is_transformed_away(style: Style) -> bool:
    if "zoom" in style and style["zoom"] != "0" and share_of(style["zoom"]) < FAINT:  # browsers treat 0 as 1
        return True
    if "scale" in style and any(abs(share_of(part)) < 0.02 for part in _WORDS.findall(style["scale"])):
        return True
    match style.get("rotate", "").split():
        case ("x" | "y", angle) if _turns_edge(angle):
            return True
        case _, _, z, angle if _turns_edge(angle, z):
            return True
    transform = style.get("transform", "") or style.get("-webkit-transform", "")
    for _ in range(3):  # resolve nested sums
        transform = _SUMS.sub(_number, transform)
    return any(_flattens(name, value.replace(",", " ").split()) for name, value in _CALL.findall(transform))


def _flattens(name: str, parts: list[str]) -> bool:
    if name.startswith("scale"):
        return any(abs(share_of(part)) < 0.02 for part in parts)
    if name.startswith("matrix"):
        at = (0, 1, 4, 5) if name == "matrix3d" else (0, 1, 2, 3)
        if len(parts) <= at[-1]:
            return False
        a, b, c, d = (share_of(parts[each]) for each in at)
        return abs(a * d - b * c) < 0.001
    if name.startswith("translate"):
        lengths = [px_of(part) or 0 for part in parts]
        return any(abs(each) > 3 * FAR_PX or each <= -2 * FAR_PX for each in lengths)
    if name in ("rotatex", "rotatey") and parts:
        return _turns_edge(parts[0])
    return name == "rotate3d" and len(parts) == 4 and _turns_edge(parts[3], parts[2])


def _turns_edge(angle: str, z: str = "0") -> bool:
    """Return whether a rotated element is invisible because it is seen edge-on; `z`: z component of the axis."""
    degrees = px_of(angle, _DEGREES)
    is_upright = degrees is not None and abs(math.cos(math.radians(degrees))) < 0.02
    return is_upright and abs(share_of(z)) < 0.01


def _number(found: re.Match[str]) -> str:
    number = px_of(found[0])
    number = px_of(found[0], _DEGREES) if number is None else number
    return found[0] if number is None else f"{number:.6f}"


def _is_masked(style: Style) -> bool:
    masks = " ".join(style.get(name, "") for name in _MASKS)
    for name, value in _CALL.findall(re.sub(r"rgba?\([^()]*[,/ ]0(?:\.0*)?\)", "transparent", masks)):
        stops = [part for part in map(str.strip, value.split(",")) if not _DIRECTION.fullmatch(part)]
        if name.endswith("gradient") and stops and all(each.startswith("transparent") for each in stops):
            return True
    return False


_TESTS = (
    (_is_transparent, "opacity",
     frozenset({"opacity", "filter", "-webkit-filter", "color", "-webkit-text-fill-color"})),
    (_is_off_screen, "position", frozenset({"position", *_SHIFTS})),
    (_is_without_size, "size", frozenset({"overflow", "overflow-x", "overflow-y", "contain"})),
    (_is_clipped, "clip", frozenset({"clip", "clip-path", "-webkit-clip-path"})),
    (_is_transformed_away, "transform",
     frozenset({"zoom", "rotate", "scale", "transform", "-webkit-transform"})),
    (_is_masked, "mask", frozenset(_MASKS)),
)  # fmt: skip
