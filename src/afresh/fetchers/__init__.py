"""One look at an address."""
