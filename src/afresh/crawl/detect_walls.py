"""Pages that turned into something else in this run, grouped by what they turned into."""

from dataclasses import dataclass, field

from afresh.crawl.plausibility import SAME
from afresh.text.similarity import WIDTH, likeness

KEYS = 4  # of a sketch's numbers: two pages that are one share the first few with near certainty
MOST = 2_000  # groups that are remembered
MEMBERS = 50  # of a group: that it is a crowd is clear by then


@dataclass(slots=True)
class _Group:
    """Addresses that show one page now, each with the sketch of what it showed before."""

    sketch: str
    before: dict[str, str] = field(default_factory=dict)


class Crowd:
    """Counts addresses that show the same page and did not before."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}  # by the first numbers of the sketch

    def join(self, url: str, before: str, sketch: str) -> int:
        """Note what an address turned into; the answer is how many others did the same from elsewhere."""
        group = self._group(sketch)
        if len(group.before) < MEMBERS:
            group.before[url] = before
        others = [old for other, old in group.before.items() if other != url]
        return sum(1 for old in others if likeness(old, before) < SAME)

    def _group(self, sketch: str) -> _Group:
        keys = [sketch[at : at + WIDTH] for at in range(0, KEYS * WIDTH, WIDTH)]  # "" of an empty page
        for key in keys:
            found = self._groups.get(key)
            if found is not None and likeness(found.sketch, sketch) >= SAME:
                return found
        group = _Group(sketch)
        if len(self._groups) < MOST * KEYS:
            self._groups |= dict.fromkeys(keys, group)
        return group
