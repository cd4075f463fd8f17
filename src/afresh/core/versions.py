"""Which version of a source is meant: `18`, `^18`, `~18.2`, `>=17 <19`, `latest`, or a label as it is.

| asked for                           | chosen                                                             |
|-------------------------------------|--------------------------------------------------------------------|
| nothing                             | the source without a version, else as `latest`                     |
| `latest`, `*`                       | the newest release, else `stable` and the like, else what there is |
| a label that exists: `main`, `v18`  | that one, whatever it looks like                                   |
| `18.2.0`                            | that one, else the nearest lower                                   |
| `18`, `18.x`, `18.2.*`              | the newest within, else the nearest lower                          |
| `^18`, `~18.2`, `>=17 <19`, `~=1.4` | the newest within, else the nearest lower                          |

Older pages are mostly still right, so a lower version is better than none; a higher one is not. Where there
is no lower one either, the source without a version answers. Pre-releases stand back as long as there is a
release to choose, unless one is asked for by name. A version with less than three numbers stands for all
that begin with them: `>18.2` begins at 18.3.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from afresh.core.errors import UsageError
from afresh.core.version_order import Key, Numbers, Version, bare, floor_of, just_above, open_numbers, read

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
