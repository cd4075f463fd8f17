"""Search answers as well as it did: the floors of eval/floors.json hold, and none changes without a word."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from eval.floors import (
    FILE,
    JOURNAL,
    LOWERED,
    MAIN,
    RATCHET,
    Floors,
    fingerprint,
    gains,
    misses,
    raised,
    read,
    unexplained,
)
from eval.measure import FAST, HYBRID, MODES, TEXT, VECTOR, Measured, measure
from eval.sets import CRANFIELD, FASTAPI, NAMES, Question, load
from eval.weak import ANSWERED, PARTS, parts_of, shares

from afresh.search.evaluation import METRICS

HARD = {CRANFIELD: 0.42}  # nDCG@10 of the hybrid with the embedded model, promised; no floor goes below

WEAK = {"weak without answer": 0.8, "good with answer": 0.95}  # over both sets, promised


@pytest.mark.slow
async def test_search_holds_its_floors_and_the_hybrid_beats_its_halves(shared: Path, tmp_path: Path) -> None:
    all_measured = [await measure(load(name, shared), tmp_path) for name in NAMES]
    floors = read()
    assert [miss for each in all_measured for miss in misses(each, floors)] == []
    assert any(gains(each) for each in all_measured)
    right = [dict(shares(each.weak)) for each in all_measured]
    for name, least in WEAK.items():
        assert sum(each[name] for each in right) >= least * len(right) - 1e-9, right


def test_no_floor_is_below_what_is_promised() -> None:
    floors = read()
    held = {name: floors[name][FAST][HYBRID][MAIN] for name in HARD}
    assert all(held[name] >= least for name, least in HARD.items()), held


def test_the_journal_lists_every_change_of_the_floors() -> None:
    assert list(unexplained(FILE.read_bytes(), JOURNAL.read_text("utf-8"))) == []


# ---- the gate itself can fail ------------------------------------------------------------------


def _measured(by_mode: Mapping[str, float], name: str = CRANFIELD) -> Measured:
    rows = {mode: [(value,) * len(METRICS)] for mode, value in by_mode.items()}
    return Measured(name, FAST, (Question("1", "?", {"a": 1}),), {}, rows, 0.0)


def _floors(value: float) -> Floors:
    held = {FAST: {mode: dict.fromkeys(METRICS, value) for mode in MODES}}
    return dict.fromkeys(NAMES, held)


def test_a_score_below_its_floor_is_a_miss() -> None:
    even = dict.fromkeys(MODES, 0.5)
    assert list(misses(_measured(even), _floors(0.5))) == []
    assert len(list(misses(_measured(even), _floors(0.501)))) == len(MODES) * len(METRICS)


def test_a_score_without_a_floor_or_far_above_it_is_a_miss() -> None:
    even = _measured(dict.fromkeys(MODES, 0.5))
    assert all("has no floor" in miss for miss in misses(even, {}))
    assert len(list(misses(even, {}))) == len(MODES) * len(METRICS)
    assert all("far above" in miss for miss in misses(even, _floors(0.5 - RATCHET - 0.001)))
    assert len(list(misses(even, _floors(0.5 - RATCHET - 0.001)))) == len(MODES) * len(METRICS)


@pytest.mark.parametrize("half", [TEXT, VECTOR])
def test_a_hybrid_behind_one_half_is_a_miss(half: str) -> None:
    behind = _measured({TEXT: 0.5, VECTOR: 0.5, HYBRID: 0.5, half: 0.5001})
    assert [miss for miss in misses(behind, _floors(0.49)) if "better half" in miss]
    assert not gains(behind)
    assert gains(_measured({TEXT: 0.5, VECTOR: 0.4, HYBRID: 0.51}))


def test_floors_are_raised_never_lowered() -> None:
    once = raised(_floors(0.4), _measured(dict.fromkeys(MODES, 0.5)))
    assert once[CRANFIELD][FAST][HYBRID] == dict.fromkeys(METRICS, 0.495)
    assert once[FASTAPI] == _floors(0.4)[FASTAPI]
    assert raised(once, _measured(dict.fromkeys(MODES, 0.3))) == once


def _line(floors: bytes, cranfield: float, fastapi: float, why: str) -> str:
    return f"| 2026-01-02 | {fingerprint(floors)} | {cranfield} | {fastapi} | {why} |\n"


def test_a_change_of_the_floors_needs_a_line_and_a_lower_one_says_so() -> None:
    before, after = (json.dumps(_floors(value)).encode() for value in (0.5, 0.4))
    first = _line(before, 0.5, 0.5, "the first")
    assert list(unexplained(before, first)) == []
    assert list(unexplained(before, "")) != []
    assert list(unexplained(after, first)) != []  # changed, and nobody said why
    assert list(unexplained(after, first + _line(after, 0.5, 0.5, "a lie"))) != []
    assert list(unexplained(after, first + _line(after, 0.4, 0.4, "no reason"))) != []
    assert list(unexplained(after, first + _line(after, 0.4, 0.4, f"{LOWERED}it is read otherwise"))) == []


def test_the_questions_about_weak_answers_are_60_and_60_in_disjoint_halves(shared: Path) -> None:
    for name in NAMES:
        parts = parts_of(load(name, shared))
        assert [[len(queries) for queries in parts[part]] for part in PARTS] == [[ANSWERED // 2] * 2] * 2
        every = [query for halves in parts.values() for queries in halves for query in queries]
        assert len(set(every)) == len(every)
