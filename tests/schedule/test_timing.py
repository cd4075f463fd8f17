"""Schedules: what may be written, what comes next, and that missed times become one."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.model.records import Page, PageId, Source, SourceId
from afresh.schedule.plan import next_check
from afresh.schedule.rules import Budget, CronError, Interval, Schedule, parse_budget, parse_schedule

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
moments = st.integers(0, 2**32).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("every", "it has 1 field, not five"),
        ("every day", "expected a duration"),
        ("every 30s", "the shortest interval is a minute"),
        ("every 0h", "the shortest interval is a minute"),
        ("0 0 30 2 *", "does not exist in any year"),
        ("automatic", "it has 1 field, not five"),
    ],
)
def test_F89_a_wrong_schedule_says_what_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_schedule(text)
    assert reason in str(caught.value)


def test_schedules_differ_by_all_that_moves_their_times() -> None:
    made = [
        parse_schedule("0 3 * * *"),
        parse_schedule("0 3 * * *", BERLIN),
        parse_schedule("0 3 * * *", jitter_seconds=60),
        parse_schedule("Every  6h"),
        parse_schedule("AUTO", budget="500/h"),
        parse_schedule("auto", budget="501/h"),
    ]
    assert len({each.key for each in made}) == len(made)
    assert [each.text for each in made[3:]] == ["every 6h", "auto", "auto"]


def test_F29_a_time_that_does_not_exist_comes_once_after_and_one_that_comes_twice_comes_once() -> None:
    schedule = parse_schedule("30 2 * * *", BERLIN)

    def times(start: str, number: int) -> list[str]:
        found, slot = [], utc(start)
        for _ in range(number):
            following = schedule.following(slot, slot)
            assert following is not None
            found.append(following.astimezone(BERLIN).strftime("%d %H:%M %z"))
            slot = following
        return found

    assert times("2026-03-27T12:00", 3) == ["28 02:30 +0100", "29 03:00 +0200", "30 02:30 +0200"]
    assert times("2026-10-23T12:00", 3) == ["24 02:30 +0200", "25 02:30 +0200", "26 02:30 +0100"]
    leap = parse_schedule("0 0 29 2 *")
    assert leap.next_after(NOW) == utc("2028-02-29T00:00")


@given(slot=moments, late=st.floats(0, 1e8), minutes=st.integers(1, 50_000))
def test_F29_times_that_were_missed_become_one_and_the_step_is_kept(slot: datetime, late: float, minutes: int) -> None:
    interval, now = timedelta(minutes=minutes), slot + timedelta(seconds=late)
    following = Schedule("", Interval(interval)).following(slot, now)
    assert following is not None
    assert now < following <= now + interval
    assert (following - slot) % interval == timedelta()


@given(slot=moments, jitter=st.floats(0, 86_400), names=st.sets(st.text(max_size=8), min_size=2, max_size=9))
def test_jitter_is_the_same_in_every_process_and_never_early(slot: datetime, jitter: float, names: set[str]) -> None:
    schedule = Schedule("", Interval(timedelta(hours=1)), jitter_seconds=jitter)
    delays = [schedule.delayed(slot, name) - slot for name in sorted(names)]
    assert delays == [schedule.delayed(slot, name) - slot for name in sorted(names)]
    assert all(timedelta() <= delay <= timedelta(seconds=jitter + 0.001) for delay in delays)
    assert jitter < 60 or len(set(delays)) > 1


@given(looks=st.integers(1, 10_000_000), seconds=st.sampled_from([1.0, 60.0, 3_600.0, 86_400.0]))
def test_runs_under_a_budget_use_it_up_and_no_more(looks: int, seconds: float) -> None:
    budget = Budget(looks, seconds)
    batch, pause = budget.batch
    assert batch >= 1
    assert batch / pause == pytest.approx(budget.rate)
    assert pause >= 300 - max(1, 1 / budget.rate) or batch == 1


@pytest.mark.parametrize("text", ["", "0/h", "-1/h", "5", "5/w", "500/hx y", "9999999999/h"])
def test_a_wrong_budget_is_refused(text: str) -> None:
    with pytest.raises(CronError, match="500/h"):
        parse_budget(text)


def test_a_budget_is_read() -> None:
    assert [parse_budget(text) for text in ("500/h", "20 / minute", "5000 per day")] == [
        Budget(500, 3_600),
        Budget(20, 60),
        Budget(5_000, 86_400),
    ]


@pytest.mark.parametrize(
    ("kind", "rule", "due", "links", "answer"),
    [
        ("web", None, HOUR, 1, (None, "no schedule: with the next refresh")),
        ("web", "every 6h", HOUR * 23, 1, (HOUR * 6, "")),
        ("web", "every 6h", None, 1, (HOUR * 6, "")),
        ("web", "auto", HOUR * 6.5, 1, (HOUR * 6.6, "")),
        ("web", "auto", None, 1, (None, "with the next full refresh")),
        ("links", "every 6h", HOUR * 7, 0, (HOUR * 12, "")),
        ("git", "auto", None, 0, (None, "when its source lists it as changed")),
    ],
)
def test_the_next_check_is_that_of_the_first_run_that_includes_the_page(
    kind: str, rule: str | None, due: timedelta | None, links: int, answer: tuple[timedelta | None, str]
) -> None:
    schedule = parse_schedule(rule, budget="500/h") if rule else None
    page = Page(id=PageId(1), source_id=SourceId(1), url="https://docs.test/")
    source = Source(
        id=SourceId(1), name="docs", version=None, kind=kind, url="https://docs.test/", created_at=NOW, updated_at=NOW
    )
    at, note = next_check(source, page, schedule, NOW + HOUR * 6, None if due is None else NOW + due, links=links)
    assert (None if at is None else at - NOW, note) == answer
