"""The command line interface."""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (console script)."""
    import atexit
    import gc
    import sys

    if arguments is None:  # a process of its own
        gc.disable()  # until the store is open: what is imported stays
    from afresh.cli.program import run_program

    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)  # otherwise the final garbage collection takes about a second
    return run_program(list(sys.argv[1:] if arguments is None else arguments))


def init_kb() -> int:
    """Run `afresh init-kb` (console script `init_kb`)."""
    import sys

    return main(["init-kb", *sys.argv[1:]])
