"""Models for vectors, summaries and link scores, built-in or behind an API."""
