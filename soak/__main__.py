"""`python -m soak NAME …`: one long test; exit code 1 when what it checks does not hold."""

import sys
from importlib import import_module
from pathlib import Path

PRIVATE = ("__init__", "__main__", "site", "generated", "gauge", "large", "documentation", "month")


def names() -> list[str]:
    """The tests there are."""
    return sorted(file.stem for file in Path(__file__).parent.glob("*.py") if file.stem not in PRIVATE)


def main() -> int:
    """Run the named test with the rest of the command line."""
    if len(sys.argv) < 2 or sys.argv[1] not in names():
        print(f"usage: python -m soak {{{','.join(names())}}} [--help]", file=sys.stderr)
        return 2
    return int(import_module(f"soak.{sys.argv[1]}").main(sys.argv[2:]))


if __name__ == "__main__":
    sys.exit(main())
