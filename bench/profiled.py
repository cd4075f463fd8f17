"""Runs afresh under cProfile, its threads too: `python bench/profiled.py OUT ARGUMENTS…`.

The processes that read pages are not in it; the profile is of the command's own process.
"""

import contextlib
import cProfile
import pstats
import sys
import threading
from types import FrameType

_profiles: list[cProfile.Profile] = []


def begin() -> None:
    """Profile the thread that calls this."""
    profile = cProfile.Profile()
    with contextlib.suppress(ValueError):  # from Python 3.12 on one profile sees all threads
        profile.enable()
        _profiles.append(profile)


def _in_thread(_frame: FrameType, _event: str, _argument: object) -> None:
    begin()


def main() -> int:
    """Run afresh with the remaining arguments and write the profile when it ends."""
    from afresh.cli import main as afresh

    out, *arguments = sys.argv[1:]
    threading.setprofile(_in_thread)
    begin()
    try:
        return int(afresh(arguments) or 0)
    finally:
        for profile in _profiles:
            profile.disable()
        pstats.Stats(*_profiles).dump_stats(out)


if __name__ == "__main__":
    sys.exit(main())
