"""`python -m afresh`: the same as the command."""

from afresh.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
