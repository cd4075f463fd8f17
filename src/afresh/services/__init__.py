"""The use cases, one class for each noun; all interfaces call these."""
