"""Pages that turned into something else in this run, grouped by what they turned into."""

from afresh.core.doubt import SAME
from afresh.core.sketch import WIDTH, likeness

KEYS = 4  # of a sketch's numbers: two pages that are one share the first few with near certainty
MOST = 2_000  # groups that are remembered


class Crowd:
    """Counts addresses that show the same page."""

    def __init__(self) -> None:
        self._groups: dict[str, tuple[str, set[str]]] = {}  # number -> sketch of a group and its addresses

    def join(self, url: str, sketch: str) -> int:
        """Note what an address turned into; the answer is how many other addresses did the same."""
        keys = [sketch[at : at + WIDTH] for at in range(0, KEYS * WIDTH, WIDTH)]  # "" of an empty page
        group = next((found for key in keys if (found := self._found(key, sketch))), None)
        if group is None:
            group = (sketch, set())
            if len(self._groups) < MOST * KEYS:
                self._groups |= dict.fromkeys(keys, group)
        group[1].add(url)
        return len(group[1]) - 1

    def _found(self, key: str, sketch: str) -> tuple[str, set[str]] | None:
        group = self._groups.get(key)
        return group if group is not None and likeness(group[0], sketch) >= SAME else None
