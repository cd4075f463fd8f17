"""One store, several dialects."""
