"""The use cases, one class for each noun; every face calls these."""
