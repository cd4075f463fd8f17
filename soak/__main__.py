"""`python -m soak NAME …`: run one long test; exit with 1 if a check fails."""

import sys
from importlib import import_module
from pathlib import Path

PRIVATE = ("__init__", "__main__", "site", "generated", "gauge", "large", "documentation", "month")


def names() -> list[str]:
    """Return the names of the tests."""
    return sorted(file.stem for file in Path(__file__).parent.glob("*.py") if file.stem not in PRIVATE)


def main() -> int:
    """Run the test that the first argument names, with the other arguments."""
    if len(sys.argv) < 2 or sys.argv[1] not in names():
        print(f"usage: python -m soak {{{','.join(names())}}} [--help]", file=sys.stderr)
        return 2
    return int(import_module(f"soak.{sys.argv[1]}").main(sys.argv[2:]))


if __name__ == "__main__":
    sys.exit(main())
