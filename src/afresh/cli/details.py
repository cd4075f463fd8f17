"""Draw single results: why, status, plan, preview, doctor, settings, one page, one version."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from afresh.cli import report
from afresh.cli.tables import facts, moment, sink, state, table, text, vectors
from afresh.config import SettingValue
from afresh.errors import UsageError
from afresh.model.overview import Preview
from afresh.model.reports import (
    Finding,
    FoundVersion,
    Freshness,
    OpenedPage,
    PageExplanation,
    PageView,
    RefreshPlan,
    StoreStatus,
    WorkerView,
)
from afresh.model.versions import Match
from afresh.present.wording import ago, clean, count, due, duration, label, size
from afresh.sync.reports import CopyView

if TYPE_CHECKING:
    from afresh.kb import KnowledgeBase


SHOWN_LINKS = 5
SHORT_VALUE = 12


def why(view: PageExplanation, now: datetime) -> RenderableType:
    page = view.page
    listed = page.content_hash is not None  # a listing reports it, or a link leads to it again
    no_time = "when its source lists it as changed" if listed else "when something links here again"
    pairs: list[tuple[str, RenderableType]] = [
        ("status", state(view.status)),
        ("source", text(label(view.source, view.version))),
        ("last look", _last_look(view, now)),
        ("next check", due(view.next_look, now, never=no_time)),
        ("changed", ago(page.changed_at, now)),
        ("first seen", ago(page.created_at, now)),
        ("last read", ago(page.last_scraped, now)),
        ("last seen", ago(page.last_seen, now)),
        ("updated", ago(page.updated_at, now)),
        ("content type", text(page.content_type)),
        ("validators", text(_validators(page))),
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


def former(view: PageExplanation) -> RenderableType:
    return Text(clean(view.former or "", lines=True), overflow="fold")


def _copy(copy: CopyView, now: datetime) -> Text:
    shown = state(copy.state)
    if copy.remote_id is not None:
        name = f"“{clean(copy.remote_name)}” " if copy.remote_name else ""
        shown.append(f" as {name}{clean(copy.remote_id)}")
    if copy.error:
        shown.append(f", {clean(copy.error)}", "red")
    if copy.next_try_at is not None:
        shown.append(f", next try {due(copy.next_try_at, now)}")
    return shown


def _last_look(view: PageExplanation, now: datetime) -> Text:
    if view.latest is None or view.latest.completed_at is None:
        return text("never")
    latest = view.latest
    shown = Text.assemble(state(latest.outcome), f" {latest.status_code or ''}".rstrip())
    return shown.append(f", {ago(latest.completed_at, now)} ({moment(latest.completed_at)} UTC)")


def _validators(page: PageView) -> str:
    if page.url.startswith("file:") and not page.etag:
        written = f" ({page.last_modified})" if page.last_modified else ""
        return f"size and time of the file{written}"
    named = (("ETag", page.etag), ("Last-Modified", page.last_modified))
    return ", ".join(f"{name} {value}" for name, value in named if value)


def _linked(urls: Sequence[str]) -> Text:
    if not urls:
        return text("no page on record")
    more = len(urls) - SHOWN_LINKS
    lines = [clean(url) for url in urls[:SHOWN_LINKS]] + ([f"and {count(more)} more"] if more > 0 else [])
    return Text("\n".join(lines))


def status(view: StoreStatus, now: datetime) -> RenderableType:
    doubtful, waiting = Text(count(view.doubtful)), count(view.pending)
    if view.doubtful:
        doubtful = Text.assemble((count(view.doubtful), "yellow"), ", named by afresh pages LABEL --doubtful")
    if view.pending and view.oldest_pending is not None:
        waiting += f", the oldest due {ago(view.oldest_pending, now)}"
    pairs: list[tuple[str, RenderableType]] = [
        ("store", Text(f"{clean(view.store)} ({size(view.size_bytes)})", overflow="fold")),
        ("sources", count(view.sources)),
        ("pages", count(view.pages)),
        ("doubtful", doubtful),
        ("chunks", count(view.chunks)),
        ("vectors", vectors(view.model, view.unembedded, view.wanted_model)),
        ("attempts", count(view.attempts)),
        ("waiting", waiting),
        ("claimed by workers", count(view.in_flight)),
        ("workers", Text("\n".join(_worker(each, now) for each in view.workers) or "none at work")),
    ]
    pairs += [("rate", f"{view.pages_per_second:g} pages/s")] if view.pages_per_second else []
    pairs += [("queues", _queues(view, now))] if view.hosts else []
    pairs += [(each.sink, sink(each, now)) for each in view.sinks]
    parts: list[RenderableType] = [facts(pairs)]
    lines = [line for each in view.freshness for line in _freshness(each, now)]
    parts += [Text(), *lines] if lines else []
    for run in view.runs:
        parts += [Text(), report.headline(run)]
        parts += [Text.assemble("  ", line) for line in report.next_steps(run)]
    return Group(*parts)


def _freshness(view: Freshness, now: datetime) -> list[Text]:
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


def _worker(view: WorkerView, now: datetime) -> str:
    leads = f", leads {', '.join(f'run {run}' for run in view.runs)}" if view.runs else ""
    return clean(
        f"{view.host} {view.pid}, began {ago(view.since, now)}{leads}, has claimed {count(view.held, 'page')}"
    )


def _queues(view: StoreStatus, now: datetime) -> Text:
    lines = []
    for host in view.hosts:
        oldest = f", the oldest due {ago(host.oldest, now)}" if host.oldest else ""
        name = host.domain or "files"
        lines.append(clean(f"{name}: {count(host.waiting)} waiting, {count(host.held)} claimed{oldest}"))
    return Text("\n".join(lines))


def plan(view: RefreshPlan, now: datetime) -> RenderableType:
    looks = view.known + view.first_looks
    time = f", about {duration(view.estimated_seconds)}" if view.estimated_seconds is not None else ""
    head = Text.assemble(
        (clean(label(view.source, view.version)), "bold"),
        f" · a {clean(view.mode)} would take {count(looks, 'look')}{time}",
    )
    due_now = count(view.due)
    if view.budget is not None and view.due > view.budget:
        due_now += f" (one `afresh refresh --due` looks at {count(view.budget)} of them)"
    pairs: list[tuple[str, RenderableType]] = [
        ("asks if changed", f"{count(view.conditional)} (nothing is downloaded where it is not)"),
        ("downloads anyway", count(view.unconditional)),
        ("first looks", f"{count(view.first_looks)} (known by a link, never read)"),
        ("left out", f"{count(view.not_looked_at)} (the rules no longer admit them)"),
        ("due now", due_now),
        ("last run read", size(view.last_run_bytes)),
        ("all of it is", size(view.last_full_bytes)),
        ("starts at", text(view.root, "blue")),
    ]
    if view.next_time:
        when = f"{due(view.next_time, now)} ({moment(view.next_time)} UTC)"
        pairs.append(("next time", f"{when}, when `afresh refresh --due` is called"))
    notes = [Text(f"  note: {clean(note)}") for note in view.notes]
    return Group(head, facts(pairs), *notes, Text("  Nothing was fetched or written.", style="dim"))


def findings(views: Sequence[Finding]) -> RenderableType:
    parts: list[RenderableType] = []
    width = max((len(clean(view.check)) for view in views), default=0)
    for view in views:
        mark, style = (("✓", "green"), "dim") if view.ok else (("✗", "bold red"), "")
        parts.append(Text.assemble(mark, f" {clean(view.check):<{width}}  ", (clean(view.detail), style)))
        if view.fix and not view.ok:
            parts.append(Text.assemble(" " * (width + 4), ("fix: ", "bold"), clean(view.fix)))
    wrong = sum(not view.ok for view in views)
    parts.append(Text("All is well." if not wrong else f"{count(wrong, 'thing')} to fix.", style="bold"))
    return Group(*parts)


def settings(told: Iterable[SettingValue]) -> RenderableType:
    return table(
        ("setting", "*value", "from"),
        (
            (
                *(each.key, text(spelled(each.value), "bold" if each.origin != "default" else "")),
                text(each.origin, "dim"),
            )
            for each in told
        ),
        least=SHORT_VALUE,
    )


def spelled(value: object) -> str:
    """Return a value as written in a settings file."""
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


MAX_VERSIONS_SHOWN = 20  # in one line
HOW = {
    Match.EXACT: "exactly what was asked for",
    Match.RANGE: "the newest within the range",
    Match.NEAREST_LOWER: "the nearest lower one: nothing that is here fits",
    Match.LATEST: "the latest",
    Match.UNVERSIONED: "the source without a version",
}


def heading(view: OpenedPage, now: datetime) -> RenderableType:
    told = [f"checked {ago(view.checked_at, now)}", f"changed {ago(view.changed_at, now)}"]
    told += [clean(view.language)] if view.language else []
    title = Text(clean(view.title), style="bold")
    title.append(f"  {clean(label(view.source, view.version))}", "cyan")
    lines = [title, Text(clean(view.url), style="blue", overflow="fold")]
    if view.moved_from:
        lines.append(Text(f"moved from {' → '.join(map(clean, view.moved_from))}", "dim", overflow="fold"))
    lines.append(Text(", ".join(told), style="dim"))
    if view.also_in:
        lines.append(Text(f"also in {', '.join(map(clean, view.also_in))}", "dim", overflow="fold"))
    if view.doubt:
        lines.append(Text(f"in doubt: {clean(view.doubt)}", "yellow", overflow="fold"))
    return Group(*lines, Text())


def version(view: FoundVersion) -> RenderableType:
    found = Text(clean(label(view.source, view.version)), style="bold")
    found.append(f"  {HOW[view.match]}", "dim")
    there, more = [clean(each) for each in view.versions[:MAX_VERSIONS_SHOWN]], len(view.versions)
    there += [f"and {more - MAX_VERSIONS_SHOWN} more"] if more > MAX_VERSIONS_SHOWN else []
    there += ["one without a version"] if view.unversioned else []
    pairs: list[tuple[str, RenderableType]] = [
        ("address", text(view.url)),
        ("there are", Text(", ".join(there), overflow="fold")),
    ]
    return Group(found, facts(pairs))


MAX_LINES_SHOWN = 10  # links that are listed individually


async def plan_or_preview(kb: "KnowledgeBase", target: str) -> RefreshPlan | Preview:
    """Return the plan of a stored source, else a preview of a target."""
    try:
        return await kb.sources.plan(target)
    except UsageError:  # a mistyped name, unless it can be a URL, a path or a repository
        if "://" not in target and ("@" in target or not any(sign in target for sign in "/.~")):
            raise
    return await kb.sources.preview(target, here=True)


def preview(view: Preview) -> RenderableType:
    named, kept = (view.known, "kept already") if view.known else (view.title or view.name, "not kept yet")
    head = Text.assemble((clean(named), "bold"), f" · {clean(view.kind)}, {kept}")
    rules = view.rules
    pairs: list[tuple[str, RenderableType]] = [
        ("starts at", text(view.url, "blue")),
        ("name", clean(view.name)),
    ]
    if view.kind == "web":
        far = f"up to {count(rules.max_depth, 'link')} away"
        pairs.append(("reads", f"{rules.scope}, at most {count(rules.max_pages, 'page')}, {far}"))
    else:
        pairs.append(("reads", "every address that it lists" if view.kind == "links" else "its files"))
    if view.trouble:
        pairs.append(("trouble", Text(clean(view.trouble), "red")))
    elif view.kind == "web":
        pairs.append(("belong", _links(view.belong)))
        pairs.append(("left out", _links([f"{url} ({why})" for url, why in view.left_out])))
    if view.listed is not None:
        things = ("address", "addresses") if view.kind == "links" else ("file", "files")
        pairs.append(("lists", _listed(view.belong, count(view.listed, *things), view.listed)))
        pairs += [("left out", clean(f"{count(number)} {why}")) for why, number in view.dropped.items()]
    name = clean(view.known or view.url)
    how = f"afresh refresh {name}" if view.known else f"afresh crawl {name}"
    return Group(head, facts(pairs), Text(f"  Nothing was kept. `{how}` reads it.", style="dim"))


def _links(lines: Sequence[str]) -> str:
    head = count(len(lines), "link of the start page", "links of the start page")
    return _listed(lines, head, len(lines))


def _listed(lines: Sequence[str], head: str, number: int) -> str:
    more = [f"and {count(number - MAX_LINES_SHOWN)} more"] if number > MAX_LINES_SHOWN else []
    return "\n".join([head, *(f"  {clean(line)}" for line in lines[:MAX_LINES_SHOWN]), *more])
