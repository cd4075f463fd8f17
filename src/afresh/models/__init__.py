"""Models that turn texts into vectors, embedded or behind an API."""
