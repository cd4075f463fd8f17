"""In which order tests run where several processes share them: each begins with what takes longest."""

from collections.abc import Sequence
from itertools import islice

import pytest


def dealt(items: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """The tests, so that each process gets a like number of long ones and begins with them.

    xdist gives each an equal run of the list, and who is done takes from the end of another's: what comes
    first stays. Tests of one file of web pages stay together, as they share a server and a browser.
    """
    long = dict[str, list[pytest.Item]]()
    short = list[pytest.Item]()
    for item in items:
        if item.get_closest_marker("slow") is not None:
            long[item.nodeid] = [item]
        elif item.path.parent.name == "web":
            long.setdefault(str(item.path), []).append(item)
        else:
            short.append(item)
    units, others, order = list(long.values()), iter(short), list[pytest.Item]()
    for place in range(processes):
        share = [item for unit in units[place::processes] for item in unit]
        size = (len(items) - len(order)) // (processes - place)
        order += [*share, *islice(others, max(0, size - len(share)))]
    return [*order, *others]
