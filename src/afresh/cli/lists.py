"""Draw lists: sources, runs, pages, attempts, changes, links."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from afresh.access.permissions import AccessToken
from afresh.cli.tables import empty, facts, moment, short, sink, state, table, text, vectors
from afresh.errors import UsageError
from afresh.links.score import normalize_keyword
from afresh.model.records import Attempt, ChangeKind
from afresh.model.reports import ChangeView, HistoryEntry, LinkView, PageView, RunReport, ScheduleView, SourceView
from afresh.notify.outbox import OutboxMessage
from afresh.present.wording import ago, clean, count, due, duration, label
from afresh.sync.reports import SyncedDocument

if TYPE_CHECKING:
    from afresh.kb import KnowledgeBase

MAX_DIFF_LINES = 30
KIND_WIDTH = 9
MIN_REASON_WIDTH = 24  # columns in which a sentence is still readable
CHANGE_STYLES = {"new": "green", "changed": "yellow", "deleted": "red", "moved": "cyan"}
FIRST = "afresh crawl https://docs.example.org/"


def sources(views: Sequence[SourceView], now: datetime) -> RenderableType:
    columns = ("source", "kind", ">pages", ">never read", "last run", "state", "*URL")
    rows = (
        (
            *(text(label(view.name, view.version), "bold"), view.kind, count(view.pages)),
            text(count(view.errors), "red" if view.errors else "dim"),
            ago(view.crawl_time, now),
            text("invalid settings", "red") if view.trouble else state(view.last_state),
            text(view.url, "blue"),
        )
        for view in views
    )
    return table(columns, rows, optional=("kind", "last run"), none=("No sources yet. Add one:", FIRST))


def runs(reports: Sequence[RunReport]) -> RenderableType:
    rows = ((*_run(each), duration(each.seconds)) for each in reports)
    columns = (">run", "*source", "mode", "state", ">checked", ">new", ">changed", ">failed", ">took")
    return table(columns, rows, optional=("mode", "took"), none=("No runs yet. Add a source:", FIRST))


def _run(report: RunReport) -> tuple[object, ...]:
    numbers, done = (report.checked, report.new, report.changed, report.failed), report.documents
    if done is not None:
        failed = done.failed + done.stuck
        taken = done.uploaded + done.adopted
        looked_at = taken + done.replaced + done.deleted + done.verified + done.waiting + failed
        numbers = (looked_at, taken, done.replaced, failed)
    *counted, failed = numbers
    return (
        *(report.run, text(label(report.source, report.version), "bold"), report.mode),
        state("interrupted" if report.interrupted else report.state),
        *map(count, counted),
        text(count(failed), "red" if failed else "dim"),
    )


def source(view: SourceView, now: datetime) -> RenderableType:
    own, last_run = {**view.rules, **view.policy}, text(None)
    if view.last_run is not None:
        when = ago(view.last_end or view.crawl_time, now)
        last_run = Text.assemble(f"{view.last_run} ({view.last_mode}, ", state(view.last_state), f", {when})")
    pairs: list[tuple[str, RenderableType]] = [
        ("URL", text(view.url, "blue")),
        ("kind", text(view.kind)),
        ("pages", count(view.pages)),
        ("passages", count(view.chunks)),
        ("vectors", vectors(view.model, view.unembedded or 0)),
        ("links", count(view.links)),
        ("never read", text(count(view.errors), "red" if view.errors else "")),
        ("doubtful", text(count(view.doubtful), "yellow" if view.doubtful else "")),
        ("last run", last_run),
        ("least recently checked", ago(view.oldest_check, now)),
    ]
    pairs += [("error", text(view.trouble, "red"))] if view.trouble else []
    pairs += [("next check", due(view.next_time, now))] if view.next_time else []
    pairs += [(each.sink, sink(each, now)) for each in view.sinks or ()]
    pairs += [(clean(name), text(_value(value))) for name, value in own.items()]
    return Group(text(label(view.name, view.version), "bold"), facts(pairs))


def _value(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case None:
            return "no limit"
        case list() | tuple():
            return ", ".join(map(str, value)) or "none"
        case Mapping():
            return ", ".join(f"{key}:{weight:g}" for key, weight in value.items()) or "none"
    return str(value)


def pages(views: Sequence[PageView], now: datetime) -> RenderableType:
    columns = ("status", ">depth", "title", "checked", "changed", "*URL")
    rows = (
        (
            *(state(view.status), view.depth, short(view.title)),
            *(ago(view.checked_at, now), ago(view.changed_at, now), _where(view)),
        )
        for view in views
    )
    return table(columns, rows, optional=("depth", "changed", "checked"), none=("No pages match.",))


def doubts(views: Sequence[PageView], now: datetime) -> RenderableType:
    rows = ((ago(view.checked_at, now), text(view.url, "blue"), view.doubt) for view in views)
    return table(("checked", "*URL", "reason"), rows, optional=("checked",), none=("No doubtful pages.",))


def _where(view: PageView) -> Text:
    line = text(view.url, "blue")
    return line.append(f" → {clean(view.moved_to)}", "cyan") if view.moved_to else line


def attempts(rows: Sequence[HistoryEntry], now: datetime) -> RenderableType:
    """Draw the attempts to fetch a URL, grouped by source if the URL belongs to several."""
    if not rows:
        return empty("No attempts to fetch this URL.")
    columns = ("when", "outcome", ">code", ">run", "*reason")
    sources = {key: list(part) for key, part in groupby(rows, lambda row: (row.source, row.version))}
    parts: list[RenderableType] = []
    for (source, version), part in sources.items():
        name = label(source, version) if source else "a source that was removed"
        parts += [text(name, "bold")] if len(sources) > 1 else []
        parts.append(
            table(columns, (_attempt(row, now) for row in part), optional=("run", "code"), min_width=MIN_REASON_WIDTH)
        )
    return Group(*parts)


def attempts_of_run(rows: Sequence[Attempt]) -> RenderableType:
    columns, none = ("outcome", ">code", "reason", "*page"), ("No matching attempts in this run.",)
    found = ((state(row.outcome), row.status_code, row.reason or row.error_message, row.url) for row in rows)
    return table(columns, found, optional=("code",), min_width=MIN_REASON_WIDTH, none=none)


def documents_of_run(rows: Sequence[SyncedDocument]) -> RenderableType:
    columns, none = ("outcome", "then", "now", "store", "details", "*page"), ("No matching documents in this run.",)
    found = (
        (*map(state, (row.outcome, row.state, row.state_now)), row.sink, row.error or row.remote_name, row.url)
        for row in rows
    )
    return table(columns, found, optional=("store",), min_width=MIN_REASON_WIDTH, none=none)


def _attempt(row: Attempt, now: datetime) -> tuple[object, ...]:
    done = row.completed_at is not None
    return (
        text(moment(row.completed_at) if done else due(row.scheduled_for, now), "" if done else "dim"),
        state(row.outcome) if row.outcome else text("claimed" if row.locked_at else "waiting", "cyan"),
        *(row.status_code, row.run_id, row.reason or row.error_message),
    )


def changes(views: Sequence[ChangeView], now: datetime, *, whole: bool = False) -> RenderableType:
    return Group(*(_change(view, now, whole=whole) for view in views)) if views else empty("No changes.")


def _change(view: ChangeView, now: datetime, *, whole: bool) -> RenderableType:
    kind = text(view.kind, CHANGE_STYLES[view.kind])
    kind.pad_right(KIND_WIDTH - len(kind))
    line = Text.assemble(kind, text(view.url, "bold"))
    if view.moved_to:
        line.append(f" → {clean(view.moved_to)}", "cyan")
    line.append(f"  {clean(label(view.source, view.version))}, {ago(view.at, now)}", "dim")
    line.append(f", run {view.run}" if view.run else "", "dim")
    if view.kind is ChangeKind.CHANGED and view.diff is None:
        line.append(", no diff: the text is not stored", "dim")
    if not view.diff:
        return line
    return Group(line, Padding(diff(view.diff, whole=whole), (0, 0, 0, 2), expand=False))


def diff(raw: str, *, whole: bool = False) -> Text:
    """Draw a unified diff in colours; long ones are shortened with a note."""
    lines = clean(raw, lines=True).rstrip("\n").split("\n")
    kept = lines if whole else lines[:MAX_DIFF_LINES]
    styles = {"+": "green", "-": "red", "@": "cyan"}
    line = Text("\n", overflow="fold").join(
        Text(line, style="dim" if line.startswith(("+++", "---")) else styles.get(line[:1], "dim")) for line in kept
    )
    if len(kept) < len(lines):
        line.append(f"\n… {count(len(lines) - len(kept), 'more line')} (-v shows all)", "dim")
    return line


def links(views: Sequence[LinkView], *, whole: bool = False) -> RenderableType:
    if all(view.score is None for view in views):
        return table((">pages", "text", "*URL"), map(_plain, views), none=("No links match.",))
    columns = (">score", "keywords", ">pages", "text", "*URL")
    if whole:
        rows = ((*_scored(each), each.comment, text(next(iter(each.pages), None), "blue")) for each in views)
        return table((*columns, "why", "on"), rows, optional=("pages",))
    return table(columns, map(_scored, views), optional=("pages", "text"))


async def why_none(kb: "KnowledgeBase", label: str, page: str | None, keyword: str | None) -> list[str]:
    """Return why a filter matches no link: the page is unknown, or the source does not have the keyword."""
    reasons = []
    if page:
        try:
            await kb.pages.explain(page, within=label)
        except UsageError as unknown:
            reasons.append(str(unknown))
    known = ((await kb.sources.view(label)).keywords or {}) if keyword else {}
    if keyword and normalize_keyword(keyword) not in known:
        none = "no keywords (set some with `afresh crawl … --keywords`)"
        has = f"the keywords {', '.join(known)}" if known else none
        reasons.append(f"links of {label} are not scored by {normalize_keyword(keyword)!r}: {label} has {has}")
    return reasons


def _plain(view: LinkView) -> tuple[object, ...]:
    return count(view.page_count), short(view.text), text(view.url, "blue")


def _scored(view: LinkView) -> tuple[object, ...]:
    score = None if view.score is None else text(f"{view.score:.2f}", "bold")
    # such as `budget, contact 0.5`: a full score is not shown
    words = (word if fits >= 1 else f"{word} {fits:.2g}" for word, fits in view.keywords.items())
    return score, ", ".join(words), *_plain(view)


def schedules(views: Sequence[ScheduleView], now: datetime) -> RenderableType:
    columns = ("*source", "schedule", "next run", ">pages due", "last run", "state")
    rows = (
        (
            *(text(label(view.source, view.version), "bold"), _rule(view)),
            *("running now" if view.running else due(view.next_time, now), count(view.due or 0)),
            *(ago(view.last_time, now), state(view.last_state)),
        )
        for view in views
    )
    none = ("No schedules yet. Set one:", "afresh schedule --set '0 3 * * *' NAME")
    return table(columns, rows, optional=("pages due", "last run"), none=none)


def _rule(view: ScheduleView) -> str:
    extra = view.budget or (view.time_zone if view.time_zone != "UTC" else None)
    return f"{view.schedule} ({extra})" if extra else view.schedule


def tokens(found: Sequence[AccessToken], now: datetime, first: str) -> RenderableType:
    rows = (
        (
            *(each.id, each.name, each.scope, each.state(now), ago(each.created_at, now)),
            f"{each.expires_at:%Y-%m-%d}" if each.expires_at else "never",
            ", ".join(each.sources) or "all",
        )
        for each in found
    )
    columns = (">token", "name", "scope", "state", "created", "expires", "*sources")
    return table(columns, rows, none=("No tokens: the server answers only on this machine. Create one:", first))


def messages(found: Sequence[OutboxMessage], now: datetime) -> RenderableType:
    rows = (
        (
            *(each.id, each.target, each.event, each.run_id, each.state, each.attempts),
            *(ago(each.created_at, now), each.error),
        )
        for each in found
    )
    columns = (">message", "to", "event", ">run", "state", ">tries", "created", "*error")
    none = "No messages. Set where they go under `webhooks:` or `notify:` in the settings."
    return table(columns, rows, none=(none,))
