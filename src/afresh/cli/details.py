"""Single answers: why, status, plan, doctor, settings."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from afresh.cli import report
from afresh.cli.pieces import facts, moment, state, table, text, vectors
from afresh.cli.sinks import sink
from afresh.config import Told
from afresh.model.reports import Freshness, Plan, StoreStatus, Why, WorkerView
from afresh.model.store_reports import Finding
from afresh.present.safe_text import clean
from afresh.present.wording import ago, count, due, duration, label, size
from afresh.sync.reports import CopyView

SHOWN_LINKS = 5
SHORT_VALUE = 12


def why(view: Why, now: datetime) -> RenderableType:
    """The evidence first, then the facts behind it."""
    page = view.page
    pairs: list[tuple[str, RenderableType]] = [
        ("status", state(view.status)),
        ("source", text(label(view.source, view.version))),
        ("last look", _last_look(view, now)),
        ("next check", due(view.next_look, now, never=_no_time(view))),
        ("changed", ago(page.changed_at, now)),
        ("first seen", ago(page.created_at, now)),
        ("last read", ago(page.last_scraped, now)),
        ("last seen", ago(page.last_seen, now)),
        ("updated", ago(page.updated_at, now)),
        ("content type", text(page.content_type)),
        ("validators", text(_validators(view))),
        ("content hash", text(page.content_hash)),
        ("attempts", count(view.attempts)),
        ("linked from", _linked(view.linked_from)),
    ]
    pairs += [(copy.sink, _copy(copy, now)) for copy in page.copies]
    if page.missing_count:
        pairs.append(("missing", f"from {count(page.missing_count, 'complete run')} in a row"))
    if view.former is not None:
        size_before = count(len(view.former), "character")
        pairs.append(("kept", f"the {size_before} before it lost its text; --former shows them"))
    return Group(text(view.summary, "bold"), text(view.url, "blue"), facts(pairs))


def former(view: Why) -> RenderableType:
    """The text that a page had before it lost nearly all of it."""
    return Text(clean(view.former or "", lines=True), overflow="fold")


def _copy(copy: CopyView, now: datetime) -> Text:
    """Where a page stands in an external store, and what is in its way."""
    shown = state(copy.state)
    if copy.remote_id is not None:
        name = f"“{clean(copy.remote_name)}” " if copy.remote_name else ""
        shown.append(f" as {name}{clean(copy.remote_id)}")
    if copy.error:
        shown.append(f", {clean(copy.error)}", "red")
    if copy.next_try_at is not None:
        shown.append(f", next try {due(copy.next_try_at, now)}")
    return shown


def _last_look(view: Why, now: datetime) -> Text:
    if view.latest is None or view.latest.completed_at is None:
        return text("never")
    latest = view.latest
    shown = Text.assemble(state(latest.outcome), f" {latest.status_code or ''}".rstrip())
    return shown.append(f", {ago(latest.completed_at, now)} ({moment(latest.completed_at)} UTC)")


def _no_time(view: Why) -> str:
    """When a page is looked at that has no time of its own: a listing tells, or a link leads to it again."""
    listed = view.page.content_hash is not None
    return "when its source lists it as changed" if listed else "when something links here again"


def _validators(view: Why) -> str:
    page = view.page
    if page.url.startswith("file:") and not page.etag:
        written = f" ({page.last_modified})" if page.last_modified else ""
        return f"size and time of the file{written}"
    return ", ".join(
        f"{name} {value}"
        for name, value in (("ETag", page.etag), ("Last-Modified", page.last_modified))
        if value
    )


def _linked(urls: Sequence[str]) -> Text:
    if not urls:
        return text("no page on record")
    more = len(urls) - SHOWN_LINKS
    lines = [clean(url) for url in urls[:SHOWN_LINKS]] + ([f"and {count(more)} more"] if more > 0 else [])
    return Text("\n".join(lines))


def status(view: StoreStatus, now: datetime) -> RenderableType:
    """The store at a glance, and the runs that need attention."""
    pairs: list[tuple[str, RenderableType]] = [
        ("store", Text(f"{clean(view.store)} ({size(view.size_bytes)})", overflow="fold")),
        ("sources", count(view.sources)),
        ("pages", count(view.pages)),
        ("doubtful", _doubtful(view)),
        ("chunks", count(view.chunks)),
        ("vectors", vectors(view.model, view.unembedded, view.wanted_model)),
        ("attempts", count(view.attempts)),
        ("waiting", _waiting(view, now)),
        ("claimed by workers", count(view.in_flight)),
        ("workers", _workers(view, now)),
    ]
    pairs += [("rate", f"{view.pages_per_second:g} pages/s")] if view.pages_per_second else []
    pairs += [("queues", _queues(view, now))] if view.hosts else []
    pairs += [(each.sink, sink(each, now)) for each in view.sinks]
    parts: list[RenderableType] = [facts(pairs)]
    parts += (
        [Text(), *(line for each in view.freshness for line in _freshness(each, now))]
        if view.freshness
        else []
    )
    for run in view.runs:
        parts += [Text(), report.headline(run)]
        parts += [Text.assemble("  ", line) for line in report.next_steps(run)]
    return Group(*parts)


def _freshness(view: Freshness, now: datetime) -> list[Text]:
    """The age of a source, what is due in it, and what backs off and why."""
    told = [f"checked {ago(view.oldest_check, now)}" if view.oldest_check else "never read"]
    told += [f"{count(view.due)} due"] if view.due else []
    told += [f"{count(view.backing_off_count)} backing off"] if view.backing_off_count else []
    lines = [Text.assemble((clean(label(view.source, view.version)), "bold"), f" · {', '.join(told)}")]
    lines += [Text(f"  not looked at: {clean(view.trouble)}", "red", overflow="fold")] if view.trouble else []
    for page in view.backing_off:
        why = f" ({clean(page.reason)})" if page.reason else ""
        again = f"{page.next_at:%Y-%m-%d %H:%M} UTC"
        failed = "failed once" if page.failures == 1 else f"failed {page.failures} times"
        lines.append(Text(f"  {clean(page.url)} {failed}, again at {again}{why}", overflow="fold"))
    return lines


def _workers(view: StoreStatus, now: datetime) -> Text:
    """One line for each process."""
    return Text("\n".join(_worker(each, now) for each in view.workers) or "none at work")


def _worker(view: WorkerView, now: datetime) -> str:
    leads = f", leads {', '.join(f'run {run}' for run in view.runs)}" if view.runs else ""
    return clean(
        f"{view.host} {view.pid}, began {ago(view.since, now)}{leads}, has claimed {count(view.held, 'page')}"
    )


def _queues(view: StoreStatus, now: datetime) -> Text:
    """One line for each host."""
    lines = []
    for host in view.hosts:
        oldest = f", the oldest due {ago(host.oldest, now)}" if host.oldest else ""
        name = host.domain or "files"
        lines.append(clean(f"{name}: {count(host.waiting)} waiting, {count(host.held)} claimed{oldest}"))
    return Text("\n".join(lines))


def _doubtful(view: StoreStatus) -> Text:
    if not view.doubtful:
        return Text("0")
    return Text.assemble((count(view.doubtful), "yellow"), ", named by afresh pages LABEL --doubtful")


def _waiting(view: StoreStatus, now: datetime) -> str:
    if not view.pending or view.oldest_pending is None:
        return count(view.pending)
    return f"{count(view.pending)}, the oldest due {ago(view.oldest_pending, now)}"


def plan(view: Plan, now: datetime) -> RenderableType:
    """What a refresh would look at and cost."""
    looks = view.known + view.first_looks
    time = f", about {duration(view.estimated_seconds)}" if view.estimated_seconds is not None else ""
    head = Text.assemble(
        (clean(label(view.source, view.version)), "bold"),
        f" · a {clean(view.mode)} would take {count(looks, 'look')}{time}",
    )
    pairs: list[tuple[str, RenderableType]] = [
        ("asks if changed", f"{count(view.conditional)} (nothing is downloaded where it is not)"),
        ("downloads anyway", count(view.unconditional)),
        ("first looks", f"{count(view.first_looks)} (known by a link, never read)"),
        ("left out", f"{count(view.not_looked_at)} (the rules no longer admit them)"),
        ("last run read", size(view.last_run_bytes)),
        ("all of it is", size(view.last_full_bytes)),
        ("starts at", text(view.root, "blue")),
    ]
    pairs.insert(4, ("due now", _due_now(view)))
    if view.next_time:
        when = f"{due(view.next_time, now)} ({moment(view.next_time)} UTC)"
        pairs.append(("next time", f"{when}, when `afresh refresh --due` is called"))
    notes = [Text(f"  note: {clean(note)}") for note in view.notes]
    return Group(head, facts(pairs), *notes, Text("  Nothing was fetched or written.", style="dim"))


def _due_now(view: Plan) -> str:
    if view.budget is None or view.due <= view.budget:
        return count(view.due)
    return f"{count(view.due)} (one `afresh refresh --due` looks at {count(view.budget)} of them)"


def findings(views: Sequence[Finding]) -> RenderableType:
    """One line per check, with the fix below what is wrong."""
    parts: list[RenderableType] = []
    width = max((len(clean(view.check)) for view in views), default=0)
    for view in views:
        mark = Text("✓", style="green") if view.ok else Text("✗", style="bold red")
        parts.append(
            Text.assemble(
                mark, f" {clean(view.check):<{width}}  ", (clean(view.detail), "dim" if view.ok else "")
            )
        )
        if view.fix and not view.ok:
            parts.append(Text.assemble(" " * (width + 4), ("fix: ", "bold"), clean(view.fix)))
    wrong = sum(not view.ok for view in views)
    parts.append(Text("All is well." if not wrong else f"{count(wrong, 'thing')} to fix.", style="bold"))
    return Group(*parts)


def settings(told: Iterable[Told]) -> RenderableType:
    """Every setting with its value and where it came from."""
    return table(
        ("setting", "*value", "from"),
        (
            (
                text(each.key),
                text(spelled(each.value), "bold" if each.origin != "default" else ""),
                text(each.origin, "dim"),
            )
            for each in told
        ),
        least=SHORT_VALUE,
    )


def spelled(value: object) -> str:
    """A value the way a settings file spells it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case tuple():
            return "[" + ", ".join(value) + "]"
        case Mapping():
            return "{" + ", ".join(f"{key}: {spelled(item)}" for key, item in value.items()) + "}"
        case float() if value == int(value):
            return str(int(value))
    return str(value)
