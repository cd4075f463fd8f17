"""The project's own benchmark: `make bench`, or `python -m bench --help`."""
