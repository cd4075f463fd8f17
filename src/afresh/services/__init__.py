"""The use cases, one class per subject; all interfaces call these."""
