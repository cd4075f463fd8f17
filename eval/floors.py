"""The scores that search may not fall below, and the journal without which no floor changes.

`floors.json` holds {set: {model: {mode: {metric: floor}}}}. `lowered.md` has a line for every state of that
file: its hash, the floors that matter most and a reason, so that none can change, let alone sink, unsaid.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path

from afresh.search.evaluation import METRICS
from eval.measure import FAST, HYBRID, TEXT, VECTOR, Measured
from eval.sets import CRANFIELD, FASTAPI, HERE

FILE, JOURNAL = HERE / "floors.json", HERE / "lowered.md"
SLACK = 0.005  # a new floor is that much below what was measured
RATCHET = 0.02  # further above its floor nothing may stay
TOLERANCE = 0.0  # how far the hybrid may fall behind the better of its halves
MAIN = METRICS[0]
LOWERED = "lowered: "
_LINE = re.compile(r"^\| (\d{4}-\d\d-\d\d) \| ([0-9a-f]{12}) \| ([\d.]+) \| ([\d.]+) \| (.+) \|$", re.MULTILINE)
Floors = Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal: a state of the floors, with the hybrid's main floor on each set."""

    day: date
    hash: str
    cranfield: float
    fastapi: float
    why: str


def read(file: Path = FILE) -> Floors:
    """The floors that hold."""
    found: Floors = json.loads(file.read_text("utf-8"))
    return found


def journal(text: str) -> list[Entry]:
    """The lines of the journal, oldest first."""
    return [
        Entry(date.fromisoformat(day), code, float(one), float(other), why.strip())
        for day, code, one, other, why in _LINE.findall(text)
    ]


def fingerprint(floors: bytes) -> str:
    """The hash under which the journal knows a state of the floors."""
    return hashlib.sha256(floors).hexdigest()[:12]


def misses(measured: Measured, floors: Floors) -> Iterator[str]:
    """Every way in which a measurement breaks its floors, as a sentence."""
    held = floors.get(measured.name, {}).get(measured.model, {})
    for mode, metric, value in measured.figures():
        floor = held.get(mode, {}).get(metric)
        label = f"{measured.name}, {measured.model}, {mode}: {metric} {value:.4f}"
        if floor is None:
            yield f"{label} has no floor; `python -m eval --raise WHY` sets one"
        elif value < floor:
            yield f"{label} is below its floor {floor}"
        elif value > floor + RATCHET:
            yield f"{label} is far above its floor {floor}: `python -m eval --raise WHY` raises it"
    halves = max(measured.mean(TEXT, MAIN), measured.mean(VECTOR, MAIN))
    hybrid = measured.mean(HYBRID, MAIN)
    if hybrid < halves - TOLERANCE:
        label = f"{measured.name}, {measured.model}, hybrid: {MAIN}"
        yield f"{label} {hybrid:.4f} is worse than {halves:.4f} of its better half"


def gains(measured: Measured) -> bool:
    """Whether the hybrid is better than both its halves."""
    return measured.mean(HYBRID, MAIN) > max(measured.mean(TEXT, MAIN), measured.mean(VECTOR, MAIN))


def unexplained(floors: bytes, text: str) -> Iterator[str]:
    """Every change of the floors that the journal does not tell of, as a sentence."""
    entries = journal(text)
    code = fingerprint(floors)
    if not entries or entries[-1].hash != code:
        yield f"the last line of lowered.md should tell why floors.json is now {code}"
        return
    now = json.loads(floors)
    recorded = {CRANFIELD: entries[-1].cranfield, FASTAPI: entries[-1].fastapi}
    for name, floor in recorded.items():
        if floor != now[name][FAST][HYBRID][MAIN]:
            yield f"the last line of lowered.md says {floor} for {name}, floors.json does not"
    for before, after in pairwise(entries):
        sank = after.cranfield < before.cranfield or after.fastapi < before.fastapi
        if sank and not after.why.startswith(LOWERED):
            yield f"the line {after.hash} lowers a floor; its reason has to begin with {LOWERED!r}"


def raised(floors: Floors, measured: Measured) -> Floors:
    """The floors with those of a measurement moved up, never down."""
    new = json.loads(json.dumps(floors))
    held = new.setdefault(measured.name, {}).setdefault(measured.model, {})
    for mode, metric, value in measured.figures():
        floor = math.floor((value - SLACK) * 1000) / 1000
        mine = held.setdefault(mode, {})
        mine[metric] = max(floor, mine.get(metric, 0.0))
    result: Floors = new
    return result


def record(floors: Floors, why: str, today: date) -> None:
    """Write the floors and their line in the journal."""
    text = json.dumps(floors, indent=2, sort_keys=True) + "\n"
    if FILE.read_text("utf-8") == text:
        return
    FILE.write_text(text, "utf-8")
    one, other = (floors[name][FAST][HYBRID][MAIN] for name in (CRANFIELD, FASTAPI))
    line = f"| {today} | {fingerprint(text.encode())} | {one} | {other} | {why} |\n"
    JOURNAL.write_text(JOURNAL.read_text("utf-8") + line, "utf-8")
