"""How much longer than it was written a text may become by names that stand for other texts."""

TIMES = 4
AT_LEAST = 64 * 1024  # characters


class Room:
    """What is left for the values of names; once it is used up, names stay as they are written."""

    def __init__(self, written: int) -> None:
        self._left = TIMES * written + AT_LEAST

    def take(self, value: str) -> bool:
        """Whether a value still has room; if so, it is counted, and again each time it is shown."""
        if len(value) > self._left:
            return False
        self._left -= len(value)
        return True
