"""The parts of `MemoryStore`, one file per concern, in the order of the real store."""
