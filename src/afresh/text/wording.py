"""Numbers with their nouns."""


def count(number: int, noun: str = "", plural: str = "") -> str:
    """`1,169 pages`, `1 page`."""
    word = noun if number == 1 else plural or f"{noun}s"
    return f"{number:,} {word}" if noun else f"{number:,}"
