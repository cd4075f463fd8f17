"""Pure rules: no I/O, no clock, no randomness, no logging."""
