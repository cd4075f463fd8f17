"""Where afresh writes what others read: whole files, one writer at a time."""
