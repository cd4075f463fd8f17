"""What to look at."""
