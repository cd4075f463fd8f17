"""The command line."""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; the console script."""
    import atexit
    import gc
    import sys

    from afresh.cli.ending import guarded

    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)  # else Python looks through all objects again before it ends, for a second
    return guarded(list(sys.argv[1:] if arguments is None else arguments))


def init_kb() -> int:
    """The console script `init_kb`: the same as `afresh init-kb`."""
    import sys

    return main(["init-kb", *sys.argv[1:]])
