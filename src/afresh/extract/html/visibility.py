"""Whether declarations hide an element from a reader, and by what."""

import re
from collections.abc import Mapping
from typing import NamedTuple

Style = Mapping[str, str]  # the values that hold for one element, by property

FAR_PX = 500.0  # from here on an element is off the screen
TINY_FONT_PX = 2.0
TINY_PX = 1.0
FAINT = 0.1

_LENGTH = re.compile(
    r"([-+]?(?:\d++\.?\d*+|\.\d++)(?:e[-+]?\d{1,3})?)(px|em|rem|ex|ch|pt|pc|cm|mm|in|q|vw|vh|vmin|vmax|%)?"
)
_PX = {
    "": 1.0, "px": 1.0, "em": 16.0, "rem": 16.0, "ex": 8.0, "ch": 8.0, "pt": 1.33, "pc": 16.0,
    "cm": 37.8, "mm": 3.78,
    "in": 96.0, "q": 0.94, "vw": 12.8, "vh": 8.0, "vmin": 8.0, "vmax": 12.8, "%": 12.8,
}  # fmt: skip
_CALL = re.compile(r"(?<![-\w])([-\w]++)\(([^()]*+)\)")
_NUMBER = re.compile(r"[-+]?(?:\d++\.?\d*+|\.\d++)(?:e[-+]?\d{1,3})?%?")
_FONT_SIZE = re.compile(r"(?:^|\s)((?:\d++\.?\d*+|\.\d++)(?:px|em|rem|pt|%)?)(?:\s?/\s?\S++)?\s\S")
_DISPLAYS = re.compile(
    r"(?:none|contents|block|inline|flow|flow-root|flex|grid|table|list-item|ruby|math|run-in|inherit|initial|unset|revert"
    r"|revert-layer|-webkit-box|-webkit-flex|-ms-flexbox)(?:[- ].{0,30})?"
)
_VISIBILITIES = frozenset(
    {"visible", "hidden", "collapse", "inherit", "initial", "unset", "revert", "revert-layer"}
)
_NAMED = {
    "white": "fff",
    "black": "000",
    "snow": "fffafa",
    "ivory": "fffff0",
    "ghostwhite": "f8f8ff",
    "whitesmoke": "f5f5f5",
}
_SAME_COLOUR = 12  # of 255, in every channel
_CLIPPED = frozenset({"hidden", "clip", "scroll", "auto"})


class Hidden(NamedTuple):
    """How an element is hidden."""

    by: str  # the property
    switched: bool = False  # as scripts do it to what a reader can open
    inherited: bool = False  # an element inside may undo it


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


def is_valid(name: str, value: str) -> bool:
    """Return whether a browser takes a value; one that it does not take leaves the earlier one."""
    if "var(" in value:
        return True
    if name == "display":
        return _DISPLAYS.fullmatch(value) is not None
    if name == "visibility":
        return value in _VISIBILITIES
    if name in ("opacity", "font-size", "width", "height", "max-height", "max-width", "text-indent"):
        return bool(value[:1].isdigit() or value[:1] in "+-." or value[:1].isalpha())
    return True


def hidden_by(style: Style) -> Hidden | None:
    """Return how an element is hidden; None if a reader sees it."""
    if not style:
        return None
    if style.get("display") == "none":
        return Hidden("display", switched=True)
    if style.get("visibility") in ("hidden", "collapse"):
        return Hidden("visibility", switched=True, inherited=True)
    if style.get("content-visibility") == "hidden":
        return Hidden("content-visibility", switched=True)
    size = font_size(style)
    if size is not None and size <= TINY_FONT_PX:
        return Hidden("font-size", inherited=True)
    if (spacing := _px(style.get("letter-spacing"))) is not None and spacing <= -12:
        return Hidden("letter-spacing", inherited=True)
    for hides, name, properties in _TESTS:
        if not properties.isdisjoint(style) and hides(style):
            return Hidden(name, switched=name == "size")
    return None


def font_size(style: Style) -> float | None:
    """Return the size of the font in pixels where a style sets it."""
    if "font-size" in style:
        return _px(style["font-size"])
    found = _FONT_SIZE.search(style.get("font", ""))
    return _px(found[1]) if found else None


def text_colour(style: Style) -> Colour | None:
    """Return the colour that a style gives to text."""
    return colour_of(style.get("-webkit-text-fill-color") or style.get("color") or "")


def background_of(style: Style) -> Colour | None:
    """Return the colour that a style puts behind text; one that lets nothing through."""
    for name in ("background-color", "background"):
        for word in re.findall(r"[-#\w]+(?:\([^()]*\))?", style.get(name, "")[:500]):
            colour = colour_of(word)
            if colour is not None and colour.alpha > 0.9:
                return colour
    return None


def colour_of(value: str) -> Colour | None:
    """Return the colour of a value; None for one that is not understood."""
    value = value.strip()
    if value == "transparent":
        return Colour(0, 0, 0, 0)
    if value.startswith(("rgb", "hsl")):
        parts = _NUMBER.findall(value)
        alpha = _share(parts[3]) if len(parts) > 3 else 1.0
        if value.startswith("hsl"):
            light = _share(parts[2]) if len(parts) > 2 else 0.5
            grey = light >= 0.97 or light <= 0.03
            return Colour(255 * light, 255 * light, 255 * light, alpha) if grey or alpha < FAINT else None
        if len(parts) < 3:
            return None
        red, green, blue = (_share(part) * 255 if part.endswith("%") else float(part) for part in parts[:3])
        return Colour(red, green, blue, alpha)
    digits = _NAMED.get(value, value[1:] if value.startswith("#") else "")
    if len(digits) in (3, 4):
        digits = "".join(digit * 2 for digit in digits)
    if len(digits) not in (6, 8) or not re.fullmatch(r"[0-9a-f]+", digits):
        return None
    red, green, blue = (int(digits[at : at + 2], 16) for at in (0, 2, 4))
    return Colour(red, green, blue, int(digits[6:], 16) / 255 if len(digits) == 8 else 1.0)


def _px(value: str | None) -> float | None:
    """Return a length in pixels; None for one that is not understood."""
    if value is None:
        return None
    value = value.strip()
    while value.startswith(("calc(", "(")) and value.endswith(")"):
        value = value.partition("(")[2][:-1].strip()
    found = _LENGTH.fullmatch(value)
    return float(found[1]) * _PX[found[2] or ""] if found else None


def _share(value: str | None) -> float:
    """Return a number or a percentage as a number; 1 for what is neither."""
    value = (value or "").strip()
    while value.startswith(("calc(", "(")) and value.endswith(")"):
        value = value.partition("(")[2][:-1].strip()
    if not _NUMBER.fullmatch(value):
        return 1.0
    return float(value[:-1]) / 100 if value.endswith("%") else float(value)


def _is_transparent(style: Style) -> bool:
    if "opacity" in style and _share(style["opacity"]) < FAINT:
        return True
    filters = style.get("filter") or style.get("-webkit-filter") or ""
    if any(name == "opacity" and _share(value) < FAINT for name, value in _CALL.findall(filters)):
        return True
    colour = text_colour(style)
    clipped = "text" in (style.get("background-clip") or style.get("-webkit-background-clip") or "")
    return colour is not None and colour.alpha < FAINT and not clipped and "text-shadow" not in style


def _is_off_screen(style: Style) -> bool:
    placed = style.get("position") in ("absolute", "fixed", "relative")
    names = ("left", "top", "right", "bottom", "inset") if placed else ()
    for name in (*names, "margin-left", "margin-top", "margin", "text-indent", "translate"):
        values = [_px(part) for part in style.get(name, "").split()]
        if any(value is not None and (value <= -FAR_PX or value >= 3 * FAR_PX) for value in values):
            return True
    clipped = style.get("overflow", "").startswith("hidden")
    return clipped and (_px(style.get("text-indent")) or 0) >= FAR_PX


def _is_without_size(style: Style) -> bool:
    overflow = " ".join(style.get(name, "") for name in ("overflow", "overflow-x", "overflow-y"))
    if _CLIPPED.isdisjoint(overflow.split()):
        return False
    sizes = (_px(style.get(name)) for name in ("width", "height", "max-width", "max-height", "line-height"))
    return any(size is not None and size <= TINY_PX for size in sizes)


def _is_clipped(style: Style) -> bool:
    for name, value in _CALL.findall(style.get("clip", "")):
        sides = [_px(part) for part in value.replace(",", " ").split()]
        if name == "rect" and len(sides) == 4 and None not in sides:
            top, right, bottom, left = (side or 0.0 for side in sides)
            return bottom - top <= TINY_PX or right - left <= TINY_PX
    path = style.get("clip-path") or style.get("-webkit-clip-path") or ""
    return any(_leaves_nothing(name, value) for name, value in _CALL.findall(path))


def _leaves_nothing(name: str, value: str) -> bool:
    """Return whether a shape of `clip-path` has no area."""
    parts = value.partition(" round ")[0].split()
    if name == "inset":
        sides = [_share(part) if part.endswith("%") else (_px(part) or 0) / 1000 for part in parts[:4]]
        if not sides:
            return False
        right = sides[1 % len(sides)]
        bottom, left = sides[2] if len(sides) > 2 else sides[0], sides[3] if len(sides) > 3 else right
        return sides[0] + bottom >= 1 or right + left >= 1
    if name in ("circle", "ellipse"):
        radius = _px(parts[0]) if parts else None
        return radius is not None and radius <= TINY_PX
    if name == "polygon":
        points = [point.split() for point in value.split(",")]
        across, down = {point[0] for point in points if point}, {point[-1] for point in points if point}
        return len(across) <= 1 or len(down) <= 1
    return False


def _is_transformed_away(style: Style) -> bool:
    if "scale" in style and any(_share(part) < 0.02 for part in style["scale"].split()):
        return True
    for name, value in _CALL.findall(style.get("transform", "") or style.get("-webkit-transform", "")):
        parts = value.replace(",", " ").split()
        if name.startswith("scale") and any(abs(_share(part)) < 0.02 for part in parts):
            return True
        if (
            name.startswith("matrix")
            and parts
            and _share(parts[0]) == 0
            and _share(parts[1 % len(parts)]) == 0
        ):
            return True
        if name.startswith("translate") and any(abs(_px(part) or 0) > 3 * FAR_PX for part in parts):
            return True
        if name.startswith("translate") and any((_px(part) or 0) <= -2 * FAR_PX for part in parts):
            return True
        if name in ("rotatex", "rotatey") and value.strip() in (
            "90deg",
            "-90deg",
            "270deg",
            "0.25turn",
            "100grad",
        ):
            return True
    return False


def _is_masked(style: Style) -> bool:
    masks = " ".join(
        style.get(f"{prefix}{name}", "") for prefix in ("", "-webkit-") for name in ("mask", "mask-image")
    )
    for name, value in _CALL.findall(re.sub(r"rgba?\([^()]*[,/ ]0(?:\.0*)?\)", "transparent", masks)):
        stops = [
            stop for stop in value.split(",") if not stop.strip().startswith(("to ", "circle", "ellipse"))
        ]
        colours = [stop for stop in stops if not re.fullmatch(r"\s*-?[\d.]+(?:deg|turn|rad)\s*", stop)]
        if (
            name.endswith("gradient")
            and colours
            and all(each.strip().startswith("transparent") for each in colours)
        ):
            return True
    return False


_TESTS = (
    (
        _is_transparent,
        "opacity",
        frozenset({"opacity", "filter", "-webkit-filter", "color", "-webkit-text-fill-color"}),
    ),
    (
        _is_off_screen,
        "position",
        frozenset({"position", "margin", "margin-left", "margin-top", "text-indent", "translate"}),
    ),
    (_is_without_size, "size", frozenset({"overflow", "overflow-x", "overflow-y"})),
    (_is_clipped, "clip", frozenset({"clip", "clip-path", "-webkit-clip-path"})),
    (_is_transformed_away, "transform", frozenset({"scale", "transform", "-webkit-transform"})),
    (_is_masked, "mask", frozenset({"mask", "mask-image", "-webkit-mask", "-webkit-mask-image"})),
)
