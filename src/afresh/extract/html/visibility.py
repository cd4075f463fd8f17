"""Whether declarations hide an element from a reader, and by what."""

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from afresh.extract.html.css_values import Colour, colour_of, degrees_of, px_of, share_of

Style = Mapping[str, str]  # the values that hold for one element, by property

FAR_PX = 500.0  # from here on an element is off the screen
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
_VISIBILITIES = frozenset(
    {"visible", "hidden", "collapse", "inherit", "initial", "unset", "revert", "revert-layer"}
)
_CLIPPED = frozenset({"hidden", "clip", "scroll", "auto"})
_CONTAINED = frozenset({"size", "strict"})
_GIVEN_SIZES = frozenset(
    {"height", "min-height", "aspect-ratio", "contain-intrinsic-size", "contain-intrinsic-height"}
)
_INSETS = ("left", "top", "right", "bottom", "inset", "inset-inline", "inset-block")
_SHIFTS = (
    "margin-left", "margin-top", "margin", "margin-inline", "margin-block", "text-indent", "translate",
)  # fmt: skip
_WORDS = re.compile(r"[-+.%\w]*\((?:[^()]|\([^()]*\))*\)|[^\s()]+")
_DRAWN = re.compile(r"\bpath\((?:\s*(?:nonzero|evenodd)\s*,)?\s*[\"']([^\"']*)")
_SUMS = re.compile(r"\b(?:calc|min|max|clamp|abs)\([^()]*\)")
_PATH_PART = re.compile(r"([a-z])([^a-df-z]*)", re.IGNORECASE)
_PATH_NUMBER = re.compile(r"[-+]?(?:\d++\.?\d*+|\.\d++)(?:e[-+]?\d{1,3})?", re.IGNORECASE)


class Hidden(NamedTuple):
    """How an element is hidden."""

    by: str  # the property
    switched: bool = False  # as scripts do it to what a reader can open
    inherited: bool = False  # an element inside may undo it


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
    if (spacing := px_of(style.get("letter-spacing"))) is not None and spacing <= -12:
        return Hidden("letter-spacing", inherited=True)
    for hides, name, properties in _TESTS:
        if not properties.isdisjoint(style) and hides(style):
            return Hidden(name, switched=name == "size")
    return None


def font_size(style: Style) -> float | None:
    """Return the size of the font in pixels where a style sets it."""
    if "font-size" in style:
        return px_of(style["font-size"])
    found = _FONT_SIZE.search(style.get("font", ""))
    return px_of(found[1]) if found else None


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
        values = [px_of(part) for part in _words(style.get(name, ""))]
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
            top, right, bottom, left = (side or 0.0 for side in sides)
            return bottom - top <= TINY_PX or right - left <= TINY_PX
    path = style.get("clip-path") or style.get("-webkit-clip-path") or ""
    if drawn := _DRAWN.search(path):
        return _encloses_nothing(drawn[1])
    return any(_leaves_nothing(name, value) for name, value in _CALL.findall(path))


def _encloses_nothing(path: str) -> bool:
    """Return whether a path of `clip-path` has no area on the element; its points tell, curves stay within."""
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
    """Return whether a shape of `clip-path` has no area."""
    parts = value.partition(" round ")[0].split()
    if name == "inset":
        shares = [share_of(part) if part.endswith("%") else (px_of(part) or 0) / 1000 for part in parts[:4]]
        if not shares:
            return False
        right = shares[1 % len(shares)]
        bottom, left = shares[2] if len(shares) > 2 else shares[0], shares[3] if len(shares) > 3 else right
        return shares[0] + bottom >= 1 or right + left >= 1
    if name in ("rect", "xywh"):
        sides = [px_of(part) for part in parts[:4]]
        if len(sides) < 4 or None in sides:
            return False
        one, two, three, four = (side or 0.0 for side in sides)
        if name == "xywh":
            return three <= TINY_PX or four <= TINY_PX
        return three - one <= TINY_PX or two - four <= TINY_PX
    if name in ("circle", "ellipse"):
        radius = px_of(parts[0]) if parts else None
        return radius is not None and radius <= TINY_PX
    if name == "polygon":
        points = [point.split() for point in value.split(",")]
        across, down = {point[0] for point in points if point}, {point[-1] for point in points if point}
        return len(across) <= 1 or len(down) <= 1
    return False


def _is_transformed_away(style: Style) -> bool:
    if "zoom" in style and style["zoom"] != "0" and share_of(style["zoom"]) < FAINT:  # 0 is taken as 1
        return True
    if "scale" in style and any(abs(share_of(part)) < 0.02 for part in _words(style["scale"])):
        return True
    if "rotate" in style and _turns_edge(*_axis(style["rotate"].split())):
        return True
    transform = style.get("transform", "") or style.get("-webkit-transform", "")
    for _ in range(3):  # sums inside
        transform = _SUMS.sub(lambda found: _number(found[0]), transform)
    return any(_flattens(name, value.replace(",", " ").split()) for name, value in _CALL.findall(transform))


def _flattens(name: str, parts: list[str]) -> bool:
    """Return whether a function of `transform` leaves nothing of an element on the screen."""
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
        return _turns_edge(degrees_of(parts[0]), 0.0)
    if name == "rotate3d" and len(parts) == 4:
        return _turns_edge(degrees_of(parts[3]), share_of(parts[2]))
    return False


def _axis(parts: list[str]) -> tuple[float | None, float]:
    """Return the angle of `rotate` and how far it turns within the page."""
    if len(parts) == 2 and parts[0] in ("x", "y"):
        return degrees_of(parts[1]), 0.0
    return (degrees_of(parts[3]), share_of(parts[2])) if len(parts) == 4 else (None, 1.0)


def _turns_edge(degrees: float | None, within: float) -> bool:
    """Return whether an element is turned so that readers look at its edge."""
    return degrees is not None and abs(within) < 0.01 and abs(math.cos(math.radians(degrees))) < 0.02


def _words(value: str) -> list[str]:
    return _WORDS.findall(value)


def _number(text: str) -> str:
    found = px_of(text)
    if found is None:
        found = degrees_of(text)
    return text if found is None else f"{found:.6f}"


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
        frozenset({"position", *_SHIFTS}),
    ),
    (_is_without_size, "size", frozenset({"overflow", "overflow-x", "overflow-y", "contain"})),
    (_is_clipped, "clip", frozenset({"clip", "clip-path", "-webkit-clip-path"})),
    (
        _is_transformed_away,
        "transform",
        frozenset({"zoom", "rotate", "scale", "transform", "-webkit-transform"}),
    ),
    (_is_masked, "mask", frozenset({"mask", "mask-image", "-webkit-mask", "-webkit-mask-image"})),
)
