"""The store with its dialects SQLite and PostgreSQL."""
