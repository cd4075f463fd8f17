"""How the label of a version is read and compared: SemVer, PEP 440 and dates, by one key.

`18`, `18.0` and `v18.0.0` are the same number. A suffix stands before its number (`-rc.1`, `a2`, `.dev3`), at
it (`-lts`, `+build`) or after it (`.post1`). What is no number (`main`, `stable`, a commit) has no order.
"""

import re
from dataclasses import dataclass

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
