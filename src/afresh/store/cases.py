"""Text that is looked for in any case.

Databases know just the cases of ASCII letters here. SQLite is told those of others by `glob`, PostgreSQL by
`translate`: a function of ours would stop at every row until Python has time for it.
"""

_JOKERS = "*?["  # of glob


def in_any_case(text: str | None) -> dict[str, object]:
    """What `{holds x}` is told: a text in any case; nothing is looked for if it is empty."""
    letters = [_cases(letter) for letter in text or ""]
    others = {case: cases[0] for cases in letters for case in cases[1:]}
    return {
        "text": text or None,
        "glob": f"*{''.join(map(_globbed, letters))}*",
        "part": f"%{''.join(_plain(cases[0]) for cases in letters)}%",
        "capitals": "".join(others),
        "smalls": "".join(others.values()),
    }


def _cases(letter: str) -> str:
    """A letter in every case that SQL does not know of, the small one first."""
    if letter.isascii():
        return letter.lower()
    small = letter.upper().lower()
    if len(small) != 1:  # ß
        return letter
    return "".join(dict.fromkeys(each for each in (small, small.upper(), letter) if len(each) == 1))


def _globbed(cases: str) -> str:
    return f"[{cases}]" if len(cases) > 1 or cases in _JOKERS else cases


def _plain(letter: str) -> str:
    return f"!{letter}" if letter in "!%_" else letter
