"""Parse and compare version labels (SemVer, PEP 440 and dates) with one sort key.

`18`, `18.0` and `v18.0.0` are equal. A suffix sorts before its number (`-rc.1`, `a2`, `.dev3`), equal to it
(`-lts`, `+build`) or after it (`.post1`). Labels that are not numbers (`main`, `stable`, a commit) have no
order.
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

from afresh.dataclass import dataclass
from afresh.errors import UsageError

Numbers = tuple[int, ...]
Key = tuple[Numbers, int, tuple[tuple[int, int, str], ...]]  # numbers, stage, suffix

_DATE = re.compile(r"\d{4}-\d{1,2}(?:-\d{1,2})?")
_NUMBERS = re.compile(r"[vV]?(\d{1,18}(?:\.\d{1,18}){0,7})(?![\d.]*\d)")
_OPEN_END = re.compile(r"(?:\.[xX*])+")  # 18.x
_SEPARATED = re.compile(r"[-._]([A-Za-z0-9][A-Za-z0-9._-]*)(?:\+.*)?")
_ATTACHED = re.compile(r"((?:a|b|c|rc|dev|alpha|beta|pre|post)\d*(?:[-._][A-Za-z0-9]+)*)(?:\+.*)?", re.IGNORECASE)
_PART = re.compile(r"\d{1,18}|[a-z]+")

_FLOOR, _OTHER_STAGE, _RELEASE, _AFTER = 0, 2, 8, 9
_STAGES = {
    **dict.fromkeys(("dev", "nightly", "snapshot", "canary", "experimental"), 1),
    **dict.fromkeys(("a", "alpha"), 2),
    **dict.fromkeys(("b", "beta", "m"), 3),
    **dict.fromkeys(("pre", "preview", "next"), 4),
    **dict.fromkeys(("c", "rc"), 5),
    **dict.fromkeys(("final", "ga", "release", "lts", "stable"), _RELEASE),
    **dict.fromkeys(("post", "p", "patch", "r", "sp"), _AFTER),
}
LATEST = ("latest", "*")
FULL = 3  # numbers of a complete version
MAX_WANTED = 200
_STABLE = ("stable", "current", "release", "lts")  # words for releases, best first
_COMPARISON = re.compile(r"(\^|~=|~|>=|<=|==|=|>|<)?[ \t]*([^ \t,<>=~^]+)[ \t]*,?[ \t]*")


@dataclass(frozen=True, slots=True)
class ParsedVersion:
    label: str
    key: Key
    written: Numbers  # the numbers as written: `18.0` has two

    @property
    def is_release(self) -> bool:
        return self.key[1] >= _RELEASE


def read(label: str) -> ParsedVersion | None:
    """Parse a version label such as `v18.2`; return None for words and for open ranges such as `18.x`."""
    if _DATE.fullmatch(label):
        numbers = tuple(int(part) for part in label.split("-"))
        return ParsedVersion(label, (_strip_zeros(numbers), _RELEASE, ()), numbers)
    found = _NUMBERS.match(label)
    if found is None:
        return None
    numbers, rest = tuple(int(part) for part in found[1].split(".")), label[found.end() :]
    suffix = _SEPARATED.fullmatch(rest) or _ATTACHED.fullmatch(rest)
    if _OPEN_END.fullmatch(rest) or not (suffix or not rest or rest.startswith("+")):
        return None
    return ParsedVersion(label, (_strip_zeros(numbers), *_suffix_key(suffix[1] if suffix else "")), numbers)


def floor_of(numbers: Numbers) -> Key:
    """Return a sort key below those of all versions with these numbers, including pre-releases."""
    return _strip_zeros(numbers), _FLOOR, ()


def bare(label: str) -> str:
    """Return the label in lower case, without a `v` before its number."""
    lower = label.lower()
    return lower[1:] if lower[:1] == "v" and lower[1:2].isdigit() else lower


def _strip_zeros(numbers: Numbers) -> Numbers:
    end = len(numbers)
    while end > 1 and numbers[end - 1] == 0:
        end -= 1
    return numbers[:end]


def _suffix_key(suffix: str) -> tuple[int, tuple[tuple[int, int, str], ...]]:
    """Return the sort key of a version suffix, in the order `dev`, `alpha` or unknown, `beta`, `rc`, none, `post`."""
    parts = _PART.findall(suffix.lower())
    if not parts or _STAGES.get(parts[0]) == _RELEASE:
        return _RELEASE, ()
    return _STAGES.get(parts[0], _OTHER_STAGE), tuple(
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts
    )


class Match(StrEnum):
    """The ways in which a requested version can match an existing one."""

    EXACT = "exact"
    RANGE = "range"
    NEAREST_LOWER = "nearest_lower"
    LATEST = "latest"
    UNVERSIONED = "unversioned"


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen version (None: the source without a version), and how it matched."""

    version: str | None
    match: Match


@dataclass(frozen=True, slots=True)
class _Span:
    """A range of versions from `low` (included) to `high` (excluded)."""

    low: Key | None
    high: Key | None

    def holds(self, key: Key) -> bool:
        return (self.low is None or self.low <= key) and (self.high is None or key < self.high)


def choose(wanted: str | None, existing: Iterable[str | None]) -> Choice | None:
    """Return the best match among the existing versions, or None."""
    labels = dict.fromkeys(label or None for label in existing)
    known = [each for label in labels if label is not None and (each := read(label))]
    if not wanted:
        return Choice(None, Match.UNVERSIONED) if None in labels else _latest(labels, known)
    if same := _same_label(wanted, labels):
        return Choice(same, Match.EXACT)
    if wanted.lower() in LATEST:
        return _latest(labels, known)
    asked = read(wanted)
    if asked is not None and _is_complete(asked):
        found = _exact_or_lower(asked, known)
    elif (span := _span(wanted)) is not None:
        found = _within_or_lower(span, known)
    else:
        return None
    return found or (Choice(None, Match.UNVERSIONED) if None in labels else None)


def newest_first(labels: Iterable[str]) -> list[str]:
    """Return versions for display: numbers newest first, then words."""
    keyed = {label: read(label) for label in labels}
    numbered = sorted(((known.key, label) for label, known in keyed.items() if known), reverse=True)
    return [label for _, label in numbered] + sorted(label for label, known in keyed.items() if not known)


def is_newer(one: str | None, other: str | None) -> bool:
    """Return whether to prefer `one` to `other` if no version is requested."""
    choice = choose(None, [one, other]) if one != other else None
    return choice is not None and choice.version == one


def _same_label(wanted: str, labels: Iterable[str | None]) -> str | None:
    given = [label for label in labels if label is not None]
    if wanted in given:
        return wanted
    return min((label for label in given if bare(label) == bare(wanted)), default=None)


def _latest(labels: Iterable[str | None], known: Sequence[ParsedVersion]) -> Choice | None:
    """Return the newest release; else a label such as `stable`, no version, the newest pre-release, or any label."""
    words = {label.lower(): label for label in labels if label is not None}
    if best := _newest(each for each in known if each.is_release):
        return Choice(best.label, Match.LATEST)
    if spoken := [words[word] for word in _STABLE if word in words]:
        return Choice(spoken[0], Match.LATEST)
    if None in labels:
        return Choice(None, Match.UNVERSIONED)
    if best := _newest(known):
        return Choice(best.label, Match.LATEST)
    return Choice(min(words.values()), Match.LATEST) if words else None


def _newest(known: Iterable[ParsedVersion]) -> ParsedVersion | None:
    return max(known, key=lambda each: (each.key, each.label), default=None)


def _best(known: Sequence[ParsedVersion], match: Match) -> Choice | None:
    """Return the newest release, else the newest pre-release."""
    best = _newest(each for each in known if each.is_release) or _newest(known)
    return Choice(best.label, match) if best else None


def _is_complete(version: ParsedVersion) -> bool:
    return len(version.written) >= FULL or not version.is_release


def _exact_or_lower(asked: ParsedVersion, known: Sequence[ParsedVersion]) -> Choice | None:
    if same := [each.label for each in known if each.key == asked.key]:
        return Choice(min(same), Match.EXACT)
    lower = [each for each in known if each.key < asked.key]
    if asked.is_release:
        return _best(lower, Match.NEAREST_LOWER)
    nearest = _newest(each for each in lower if each.is_release or each.key[0] == asked.key[0])
    return Choice(nearest.label, Match.NEAREST_LOWER) if nearest else _best(lower, Match.NEAREST_LOWER)


def _within_or_lower(span: _Span, known: Sequence[ParsedVersion]) -> Choice | None:
    within = _best([each for each in known if span.holds(each.key)], Match.RANGE)
    if within is not None or span.low is None:
        return within
    return _best([each for each in known if each.key < span.low], Match.NEAREST_LOWER)


def _span(wanted: str) -> _Span | None:
    """Return the range that a text describes; None for a word such as `main`."""
    parts = _comparisons(wanted)
    if parts is None:
        if any(sign in wanted for sign in "^~<>=*, |") or len(wanted) > MAX_WANTED:
            raise _no_range(wanted)
        return None
    spans = [_comparison_span(sign, version, wanted) for sign, version in parts]
    lows = [span.low for span in spans if span.low is not None]
    highs = [span.high for span in spans if span.high is not None]
    low, high = max(lows, default=None), min(highs, default=None)
    if low is not None and high is not None and low >= high:
        raise UsageError(f"no version fits {wanted!r}: the lower end of the range is above its upper end")
    return _Span(low, high)


def _comparisons(wanted: str) -> list[tuple[str, str]] | None:
    """Return the comparison signs and versions of a range; None if the text is not a range."""
    text, parts, at = wanted.strip()[: MAX_WANTED + 1], [], 0
    while at < len(text):
        found = _COMPARISON.match(text, at)
        if found is None or (read(found[2]) is None and _numbers_of(found[2]) is None):
            return None
        parts.append((found[1] or "", found[2]))
        at = found.end()
    return parts or None


def _numbers_of(version: str) -> Numbers | None:
    """Return the numbers of a version such as `18.2` or `18.2.x`, here 18 and 2; None for anything else."""
    if exact := read(version):
        return exact.written
    found = _NUMBERS.match(version)
    is_open = found is not None and _OPEN_END.fullmatch(version[found.end() :])
    return tuple(int(part) for part in found[1].split(".")) if found and is_open else None


def _comparison_span(sign: str, version: str, wanted: str) -> _Span:
    numbers, exact = _numbers_of(version), read(version)
    if numbers is None:
        raise _no_range(wanted)
    alone = exact is not None and _is_complete(exact)
    low = exact.key if exact and not exact.is_release else floor_of(numbers)
    after = floor_of(_next(numbers))
    if exact and alone:  # the smallest key above this version
        after = *exact.key[:2], (*exact.key[2], (-1, 0, ""))
    if sign == "~=" and len(numbers) == 1:
        raise UsageError(f"{wanted!r}: ~= needs at least two numbers, as in ~=18.2")
    # ^ keeps the first number that is not zero: in 0.2, the second number marks breaking changes.
    held = next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)
    kept = {"^": numbers[: held + 1], "~": numbers[:2], "~=": numbers[:-1]}
    if sign in kept:
        return _Span(low, floor_of(_next(kept[sign])))
    ends = {">=": (low, None), ">": (after, None), "<": (None, low), "<=": (None, after)}
    return _Span(*ends.get(sign, (exact.key if exact and alone else low, after)))


def _next(numbers: Numbers) -> Numbers:
    return (*numbers[:-1], numbers[-1] + 1)


def _no_range(wanted: str) -> UsageError:
    return UsageError(
        f"{wanted[:60]!r} is neither a version nor a range; a range looks like 18, 18.x, ^18, ~18.2 or '>=17 <19'"
    )
