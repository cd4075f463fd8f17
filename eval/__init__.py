"""Scores search on questions with known answers: `python -m eval`."""
