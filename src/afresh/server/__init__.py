"""The server: REST, and what is mounted beside it."""
