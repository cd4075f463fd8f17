"""Long tests that are run by hand: `python -m soak NAME`."""
