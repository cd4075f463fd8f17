"""How the label of a version is read and compared: SemVer, PEP 440 and dates, by one key.

`18`, `18.0` and `v18.0.0` are the same number. A suffix stands before its number (`-rc.1`, `a2`, `.dev3`), at
it (`-lts`, `+build`) or after it (`.post1`). What is no number (`main`, `stable`, a commit) has no order.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from afresh.errors import UsageError

Numbers = tuple[int, ...]
Key = tuple[Numbers, int, tuple[tuple[int, int, str], ...]]  # numbers, stage, suffix

_DATE = re.compile(r"\d{4}-\d{1,2}(?:-\d{1,2})?")
_NUMBERS = re.compile(r"[vV]?(\d{1,18}(?:\.\d{1,18}){0,7})(?![\d.]*\d)")
_OPEN_END = re.compile(r"(?:\.[xX*])+")  # 18.x
_SEPARATED = re.compile(r"[-._]([A-Za-z0-9][A-Za-z0-9._-]*)(?:\+.*)?")
_ATTACHED = re.compile(
    r"((?:a|b|c|rc|dev|alpha|beta|pre|post)\d*(?:[-._][A-Za-z0-9]+)*)(?:\+.*)?", re.IGNORECASE
)
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


@dataclass(frozen=True, slots=True)
class Version:
    """A label that can be compared."""

    label: str
    key: Key
    written: Numbers  # the numbers as they stand there: `18.0` has two

    @property
    def is_release(self) -> bool:
        """Whether it is no pre-release."""
        return self.key[1] >= _RELEASE


def read(label: str) -> Version | None:
    """The label as a version, or None for words and for open ends such as `18.x`."""
    if _DATE.fullmatch(label):
        numbers = tuple(int(part) for part in label.split("-"))
        return Version(label, (_plain(numbers), _RELEASE, ()), numbers)
    found = _NUMBERS.match(label)
    if found is None:
        return None
    numbers, rest = tuple(int(part) for part in found[1].split(".")), label[found.end() :]
    suffix = _SEPARATED.fullmatch(rest) or _ATTACHED.fullmatch(rest)
    if _OPEN_END.fullmatch(rest) or not (suffix or not rest or rest.startswith("+")):
        return None
    return Version(label, (_plain(numbers), *_place(suffix[1] if suffix else "")), numbers)


def open_numbers(text: str) -> Numbers | None:
    """The numbers before an open end, `18.2` of `18.2.x`, or None if there is no open end."""
    found = _NUMBERS.match(text)
    if found is None or not _OPEN_END.fullmatch(text[found.end() :]):
        return None
    return tuple(int(part) for part in found[1].split("."))


def floor_of(numbers: Numbers) -> Key:
    """A key below every version with these numbers, pre-releases too."""
    return _plain(numbers), _FLOOR, ()


def just_above(key: Key) -> Key:
    """The least key above another one."""
    numbers, stage, suffix = key
    return numbers, stage, (*suffix, (-1, 0, ""))


def bare(label: str) -> str:
    """The label as two people may write the same one: without case and without a `v` before its number."""
    lower = label.lower()
    return lower[1:] if lower[:1] == "v" and lower[1:2].isdigit() else lower


def _plain(numbers: Numbers) -> Numbers:
    end = len(numbers)
    while end > 1 and numbers[end - 1] == 0:
        end -= 1
    return numbers[:end]


def _place(suffix: str) -> tuple[int, tuple[tuple[int, int, str], ...]]:
    """Where a suffix stands: `dev`, `alpha`, `beta`, `rc`, none, `post`; unknown words are pre-releases."""
    parts = _PART.findall(suffix.lower())
    if not parts or _STAGES.get(parts[0]) == _RELEASE:
        return _RELEASE, ()
    return _STAGES.get(parts[0], _OTHER_STAGE), tuple(_identifier(part) for part in parts)


def _identifier(part: str) -> tuple[int, int, str]:
    return (0, int(part), "") if part.isdigit() else (1, 0, part)


LATEST = ("latest", "*")
FULL = 3  # numbers of a version that stands for itself alone
MAX_WANTED = 200
_STABLE = ("stable", "current", "release", "lts")  # words for what is released, best first
_COMPARISON = re.compile(r"(\^|~=|~|>=|<=|==|=|>|<)?[ \t]*([^ \t,<>=~^]+)[ \t]*,?[ \t]*")


class Match(StrEnum):
    """How a version was chosen."""

    EXACT = "exact"
    RANGE = "range"
    NEAREST_LOWER = "nearest_lower"
    LATEST = "latest"
    UNVERSIONED = "unversioned"


@dataclass(frozen=True, slots=True)
class Choice:
    """A version that was chosen, None for the source without one."""

    version: str | None
    match: Match


@dataclass(frozen=True, slots=True)
class _Span:
    """From where up to where a range reaches, the upper end not included."""

    low: Key | None
    high: Key | None

    def holds(self, key: Key) -> bool:
        return (self.low is None or self.low <= key) and (self.high is None or key < self.high)


def choose(wanted: str | None, existing: Iterable[str | None]) -> Choice | None:
    """The version that is meant among those that exist, or None if none will do."""
    labels = dict.fromkeys(label or None for label in existing)
    known = [each for label in labels if label is not None and (each := read(label))]
    if not wanted:
        return Choice(None, Match.UNVERSIONED) if None in labels else _latest(labels, known)
    if same := _same_label(wanted, labels):
        return Choice(same, Match.EXACT)
    if wanted.lower() in LATEST:
        return _latest(labels, known)
    asked = read(wanted)
    if asked is not None and _stands_for_itself(asked):
        found = _exact_or_lower(asked, known)
    elif (span := _span(wanted)) is not None:
        found = _within_or_lower(span, known)
    else:
        return None
    return found or (Choice(None, Match.UNVERSIONED) if None in labels else None)


def newest_first(labels: Iterable[str]) -> list[str]:
    """Versions in the order a reader expects: numbers downwards, then words."""
    keyed = {label: read(label) for label in labels}
    numbered = sorted(((known.key, label) for label, known in keyed.items() if known), reverse=True)
    return [label for _, label in numbered] + sorted(label for label, known in keyed.items() if not known)


def is_newer(one: str | None, other: str | None) -> bool:
    """Whether a version is to be preferred to another where none was asked for."""
    choice = choose(None, [one, other]) if one != other else None
    return choice is not None and choice.version == one


def _same_label(wanted: str, labels: Iterable[str | None]) -> str | None:
    given = [label for label in labels if label is not None]
    if wanted in given:
        return wanted
    return min((label for label in given if bare(label) == bare(wanted)), default=None)


def _latest(labels: Iterable[str | None], known: Sequence[Version]) -> Choice | None:
    """Releases, words for a release, no version at all, pre-releases, other words: the first there is."""
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


def _newest(known: Iterable[Version]) -> Version | None:
    return max(known, key=lambda each: (each.key, each.label), default=None)


def _best(known: Sequence[Version], match: Match) -> Choice | None:
    """The newest release, else the newest pre-release."""
    best = _newest(each for each in known if each.is_release) or _newest(known)
    return Choice(best.label, match) if best else None


def _stands_for_itself(version: Version) -> bool:
    return len(version.written) >= FULL or not version.is_release


def _exact_or_lower(asked: Version, known: Sequence[Version]) -> Choice | None:
    if same := [each.label for each in known if each.key == asked.key]:
        return Choice(min(same), Match.EXACT)
    lower = [each for each in known if each.key < asked.key]
    if asked.is_release:
        return _best(lower, Match.NEAREST_LOWER)
    nearby = _newest(each for each in lower if each.is_release or each.key[0] == asked.key[0])
    return Choice(nearby.label, Match.NEAREST_LOWER) if nearby else _best(lower, Match.NEAREST_LOWER)


def _within_or_lower(span: _Span, known: Sequence[Version]) -> Choice | None:
    within = _best([each for each in known if span.holds(each.key)], Match.RANGE)
    if within is not None or span.low is None:
        return within
    return _best([each for each in known if each.key < span.low], Match.NEAREST_LOWER)


# ---- ranges ---------------------------------------------------------------------------------------


def _span(wanted: str) -> _Span | None:
    """The range that is written there, or None for a word such as `main`."""
    parts = _comparisons(wanted)
    if parts is None:
        if any(sign in wanted for sign in "^~<>=*, |") or len(wanted) > MAX_WANTED:
            raise _no_range(wanted)
        return None
    spans = [_reach(sign, version, wanted) for sign, version in parts]
    lows = [span.low for span in spans if span.low is not None]
    highs = [span.high for span in spans if span.high is not None]
    low, high = max(lows, default=None), min(highs, default=None)
    if low is not None and high is not None and low >= high:
        raise UsageError(f"no version can be {wanted!r}: it ends before it begins")
    return _Span(low, high)


def _comparisons(wanted: str) -> list[tuple[str, str]] | None:
    """The signs and versions of a range, or None if it is not made of such."""
    text, parts, at = wanted.strip()[: MAX_WANTED + 1], [], 0
    while at < len(text):
        found = _COMPARISON.match(text, at)
        if found is None or (read(found[2]) is None and _numbers_of(found[2]) is None):
            return None
        parts.append((found[1] or "", found[2]))
        at = found.end()
    return parts or None


def _numbers_of(version: str) -> Numbers | None:
    exact = read(version)
    return exact.written if exact else open_numbers(version)


def _reach(sign: str, version: str, wanted: str) -> _Span:
    numbers, exact = _numbers_of(version), read(version)
    if numbers is None:
        raise _no_range(wanted)
    alone = exact is not None and _stands_for_itself(exact)
    low = exact.key if exact and not exact.is_release else floor_of(numbers)
    after = just_above(exact.key) if exact and alone else floor_of(_next(numbers))
    match sign:
        case ">=":
            return _Span(low, None)
        case ">":
            return _Span(after, None)
        case "<":
            return _Span(None, low)
        case "<=":
            return _Span(None, after)
        case "^":
            return _Span(low, floor_of(_next(numbers[: _held(numbers) + 1])))
        case "~":
            return _Span(low, floor_of(_next(numbers[:2])))
        case "~=" if len(numbers) > 1:
            return _Span(low, floor_of(_next(numbers[:-1])))
        case "~=":
            raise UsageError(f"{wanted!r}: ~= needs two numbers at least, as in ~=18.2")
    return _Span(exact.key if exact and alone else low, after)


def _held(numbers: Numbers) -> int:
    """Which number a caret holds: the first that is not nought, for in 0.2 the second tells what breaks."""
    return next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)


def _next(numbers: Numbers) -> Numbers:
    return (*numbers[:-1], numbers[-1] + 1)


def _no_range(wanted: str) -> UsageError:
    return UsageError(
        f"{wanted[:60]!r} is neither a version nor a range; "
        "a range looks like 18, 18.x, ^18, ~18.2 or '>=17 <19'"
    )
