"""Run afresh with `python -m afresh`."""

from afresh.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
