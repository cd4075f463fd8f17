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
from afresh.model import reports
from afresh.model.overview import Preview
from afresh.model.versions import Match
from afresh.present.wording import ago, clean, count, due, duration, label, size
from afresh.sync.reports import CopyView

if TYPE_CHECKING:
    from afresh.kb import KnowledgeBase
    from afresh.search.evaluation import Comparison, Evaluation

MAX_LINKED_FROM = 5
SHORT_VALUE = 12
MAX_VERSIONS = 20  # in one line
HOW = {
    Match.EXACT: "exact match",
    Match.RANGE: "newest version in the range",
    Match.NEAREST_LOWER: "closest lower version; none matches",
    Match.LATEST: "latest version",
    Match.UNVERSIONED: "source without a version",
}
MAX_LISTED = 10  # links that are listed individually


def why(view: reports.PageExplanation, now: datetime) -> RenderableType:
    page = view.page
    pairs: list[tuple[str, RenderableType]] = [
        ("status", state(view.status)),
        ("source", text(label(view.source, view.version))),
        ("last check", _last_check(view, now)),
        ("next check", due(view.next_check, now, never=clean(view.next_check_note))),
        ("changed", ago(page.changed_at, now)),
        ("first found", ago(page.created_at, now)),
        ("last downloaded", ago(page.last_scraped, now)),
        ("last found", ago(page.last_seen, now)),
        ("updated", ago(page.updated_at, now)),
        ("content type", text(page.content_type)),
        ("validators", text(_validators(page))),
        ("content hash", text(page.content_hash)),
        ("attempts", count(view.attempts)),
        ("linked from", _linked(view)),
    ]
    pairs += [(copy.sink, _copy(copy, now)) for copy in page.copies]
    if page.missing_count:
        pairs.append(("missing", f"not found by the last {count(page.missing_count, 'complete run')}"))
    if view.former is not None:
        size_before = count(len(view.former), "character")
        pairs.append(("former text", f"{size_before} from before the page lost its text; show them with --former"))
    return Group(text(view.summary, "bold"), text(view.url, "blue"), facts(pairs))


def former(view: reports.PageExplanation, _: datetime) -> RenderableType:
    return Text(clean(view.former or "", lines=True), overflow="fold")


def _copy(copy: CopyView, now: datetime) -> Text:
    line = state(copy.state)
    if copy.remote_id is not None:
        name = f"“{clean(copy.remote_name)}” " if copy.remote_name else ""
        line.append(f" as {name}{clean(copy.remote_id)}")
    if copy.error:
        line.append(f", {clean(copy.error)}", "red")
    if copy.next_try_at is not None:
        line.append(f", next try {due(copy.next_try_at, now)}")
    return line


def _last_check(view: reports.PageExplanation, now: datetime) -> Text:
    if view.latest is None or view.latest.completed_at is None:
        return text("never")
    latest = view.latest
    line = Text.assemble(state(latest.outcome), f" {latest.status_code or ''}".rstrip())
    return line.append(f", {ago(latest.completed_at, now)} ({moment(latest.completed_at)} UTC)")


def _validators(page: reports.PageView) -> str:
    if page.url.startswith("file:") and not page.etag:
        written = f" ({page.last_modified})" if page.last_modified else ""
        return f"size and time of the file{written}"
    named = (("ETag", page.etag), ("Last-Modified", page.last_modified))
    return ", ".join(f"{name} {value}" for name, value in named if value)


def _linked(view: reports.PageExplanation) -> Text:
    if not (urls := view.linked_from[:MAX_LINKED_FROM]):
        return text("no indexed page")
    more = view.linked_from_count - len(urls)
    return Text("\n".join([clean(url) for url in urls] + ([f"and {count(more)} more"] if more > 0 else [])))


def status(view: reports.StoreStatus, now: datetime) -> RenderableType:
    doubtful, waiting = Text(count(view.doubtful)), count(view.pending)
    if view.doubtful:
        doubtful = Text.assemble((count(view.doubtful), "yellow"), ": list them with `afresh pages LABEL --doubtful`")
    if view.pending and view.oldest_pending is not None:
        waiting += f", oldest due {ago(view.oldest_pending, now)}"
    pairs: list[tuple[str, RenderableType]] = [
        ("store", Text(f"{clean(view.store)} ({size(view.size_bytes)})", overflow="fold")),
        ("sources", count(view.sources)),
        ("pages", count(view.pages)),
        ("doubtful", doubtful),
        ("passages", count(view.chunks)),
        ("vectors", vectors(view.model, view.unembedded, view.wanted_model)),
        ("attempts", count(view.attempts)),
        ("waiting", waiting),
        ("claimed by workers", count(view.in_flight)),
        ("workers", Text("\n".join(_worker(each, now) for each in view.workers) or "none active")),
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


def _freshness(view: reports.Freshness, now: datetime) -> list[Text]:
    parts = [f"checked {ago(view.oldest_check, now)}" if view.oldest_check else "never read"]
    parts += [f"{count(view.due)} due"] if view.due else []
    parts += [f"{count(view.backing_off_count)} backing off"] if view.backing_off_count else []
    lines = [Text.assemble((clean(label(view.source, view.version)), "bold"), f" · {', '.join(parts)}")]
    lines += [Text(f"  not checked: {clean(view.trouble)}", "red", overflow="fold")] if view.trouble else []
    for group in view.backing_off_groups:
        page, why = group.first, f" ({clean(group.reason)})" if group.reason else ""
        again = f"{page.next_at:%Y-%m-%d %H:%M} UTC"
        failed = "failed once" if page.failures == 1 else f"failed {page.failures} times"
        what = (
            f"{clean(page.url)} {failed}"
            if group.count == 1
            else f"{clean(group.host)}: {count(group.count)} pages failed"
        )
        lines.append(Text(f"  {what}, next check at {again}{why}", overflow="fold"))
    if more := view.backing_off_count - sum(group.count for group in view.backing_off_groups):
        lines.append(Text(f"  and {count(more)} more"))
    return lines


def _worker(view: reports.WorkerView, now: datetime) -> str:
    leads = f", leads {', '.join(f'run {run}' for run in view.runs)}" if view.runs else ""
    return clean(f"{view.host} {view.pid}, started {ago(view.since, now)}{leads}, claimed {count(view.held, 'page')}")


def _queues(view: reports.StoreStatus, now: datetime) -> Text:
    lines = []
    for host in view.hosts:
        oldest = f", oldest due {ago(host.oldest, now)}" if host.oldest else ""
        name = host.domain or "files"
        lines.append(clean(f"{name}: {count(host.waiting)} waiting, {count(host.held)} claimed{oldest}"))
    return Text("\n".join(lines))


def plan(view: reports.RefreshPlan, now: datetime) -> RenderableType:
    checks = view.known + view.first_looks
    time = f", about {duration(view.estimated_seconds)}" if view.estimated_seconds is not None else ""
    head = Text.assemble(
        (clean(label(view.source, view.version)), "bold"),
        f" · a {clean(view.mode)} would check {count(checks, 'page')}{time}",
    )
    due_now = count(view.due)
    if view.budget is not None and view.due > view.budget:
        due_now += f" (one `afresh refresh --due` checks {count(view.budget)} of them)"
    pairs: list[tuple[str, RenderableType]] = [
        ("conditional requests", f"{count(view.conditional)} (download a page only if it changed)"),
        ("full requests", f"{count(view.unconditional)} (always download the page)"),
        ("new pages", f"{count(view.first_looks)} (linked, but not read yet)"),
        ("out of scope", f"{count(view.not_looked_at)} (excluded by the current rules)"),
        ("due now", due_now),
        ("last run", f"downloaded {size(view.last_run_bytes)}"),
        ("largest run", f"downloaded {size(view.last_full_bytes)}"),
        ("starts at", text(view.root, "blue")),
    ]
    if view.next_time:
        when = f"{due(view.next_time, now)} ({moment(view.next_time)} UTC)"
        pairs.append(("next check", f"{when}, by `afresh refresh --due`"))
    notes = [Text(f"  note: {clean(note)}") for note in view.notes]
    return Group(head, facts(pairs), *notes, Text("  Nothing was fetched or written.", style="dim"))


def findings(views: Sequence[reports.Finding]) -> RenderableType:
    parts: list[RenderableType] = []
    width = max((len(clean(view.check)) for view in views), default=0)
    for view in views:
        mark, style = (("✓", "green"), "dim") if view.ok else (("✗", "bold red"), "")
        parts.append(Text.assemble(mark, f" {clean(view.check):<{width}}  ", (clean(view.detail), style)))
        if view.fix and not view.ok:
            parts.append(Text.assemble(" " * (width + 4), ("fix: ", "bold"), clean(view.fix)))
    wrong = sum(not view.ok for view in views)
    parts.append(Text("All checks passed." if not wrong else f"{count(wrong, 'problem')} to fix.", style="bold"))
    return Group(*parts)


def settings(values: Iterable[SettingValue]) -> RenderableType:
    def row(each: SettingValue) -> tuple[object, ...]:
        style = "bold" if each.origin != "default" else ""
        return each.key, text(yaml_value(each.value), style), text(each.origin, "dim")

    return table(("setting", "*value", "from"), map(row, values), min_width=SHORT_VALUE)


def yaml_value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case tuple():
            return "[" + ", ".join(value) + "]"
        case Mapping():
            return "{" + ", ".join(f"{key}: {yaml_value(item)}" for key, item in value.items()) + "}"
        case float() if value == int(value):
            return str(int(value))
    return str(value)


def heading(view: reports.OpenedPage, now: datetime) -> RenderableType:
    parts = [f"checked {ago(view.checked_at, now)}", f"changed {ago(view.changed_at, now)}"]
    parts += [clean(view.language)] if view.language else []
    title = Text(clean(view.title), style="bold")
    title.append(f"  {clean(label(view.source, view.version))}", "cyan")
    lines = [title, Text(clean(view.url), style="blue", overflow="fold")]
    if view.moved_from:
        lines.append(Text(f"moved from {' → '.join(map(clean, view.moved_from))}", "dim", overflow="fold"))
    lines.append(Text(", ".join(parts), style="dim"))
    if view.also_in:
        lines.append(Text(f"also in {', '.join(map(clean, view.also_in))}", "dim", overflow="fold"))
    if view.doubt:
        lines.append(Text(f"doubtful: {clean(view.doubt)}", "yellow", overflow="fold"))
    return Group(*lines, Text())


def version(view: reports.FoundVersion) -> RenderableType:
    found = Text(clean(label(view.source, view.version)), style="bold")
    found.append(f"  {HOW[view.match]}", "dim")
    there, more = [clean(each) for each in view.versions[:MAX_VERSIONS]], len(view.versions)
    there += [f"and {more - MAX_VERSIONS} more"] if more > MAX_VERSIONS else []
    there += ["one without a version"] if view.unversioned else []
    pairs: list[tuple[str, RenderableType]] = [
        ("URL", text(view.url)),
        ("versions", Text(", ".join(there), overflow="fold")),
    ]
    return Group(found, facts(pairs))


async def plan_or_preview(kb: "KnowledgeBase", target: str) -> reports.RefreshPlan | Preview:
    """Return the refresh plan of a stored source, or a preview of a new target."""
    try:
        return await kb.sources.plan(target)
    except UsageError:  # a mistyped name, unless it can be a URL, a path or a repository
        if "://" not in target and ("@" in target or not any(sign in target for sign in "/.~")):
            raise
    return await kb.sources.preview(target, here=True)


def preview(view: Preview, _: datetime) -> RenderableType:
    named, kept = (view.known, "already added") if view.known else (view.title or view.name, "not added yet")
    head = Text.assemble((clean(named), "bold"), f" · {clean(view.kind)}, {kept}")
    rules = view.rules
    pairs: list[tuple[str, RenderableType]] = [("starts at", text(view.url, "blue")), ("name", clean(view.name))]
    if view.kind == "web":
        far = f"up to {count(rules.max_depth, 'link')} from the start"
        pairs.append(("reads", f"{rules.scope}, at most {count(rules.max_pages, 'page')}, {far}"))
    else:
        pairs.append(("reads", "every URL that it lists" if view.kind == "links" else "its files"))
    if view.trouble:
        pairs.append(("error", Text(clean(view.trouble), "red")))
    elif view.kind == "web":
        pairs.append(("in scope", _links(view.belong)))
        pairs.append(("out of scope", _links([f"{url} ({why})" for url, why in view.left_out])))
    if view.listed is not None:
        things = ("URL", "URLs") if view.kind == "links" else ("file", "files")
        pairs.append(("lists", _listed(view.belong, count(view.listed, *things), view.listed)))
        pairs += [("skipped", clean(f"{count(number)} {why}")) for why, number in view.dropped.items()]
    name = clean(view.known or view.url)
    how = f"afresh refresh {name}" if view.known else f"afresh crawl {name}"
    return Group(head, facts(pairs), Text(f"  Nothing was stored. Run `{how}` to crawl it.", style="dim"))


def _links(lines: Sequence[str]) -> str:
    return _listed(lines, count(len(lines), "link on the start page", "links on the start page"), len(lines))


def _listed(lines: Sequence[str], head: str, number: int) -> str:
    more = [f"and {count(number - MAX_LISTED)} more"] if number > MAX_LISTED else []
    return "\n".join([head, *(f"  {clean(line)}" for line in lines[:MAX_LISTED]), *more])


def evaluation(view: "Evaluation", misses: int) -> RenderableType:
    parts: list[RenderableType] = [facts(_scores(view))]
    missed = [each for each in view.scored if not each.right]
    for each in missed[:misses]:
        wanted = f"expected {clean(each.wanted[0])}" if each.wanted else "expected no result"
        got = f"found {clean(each.found[0])}" if each.found else "found nothing"
        parts.append(Text.assemble("\n", (clean(each.query), "bold"), "\n  ", wanted, "\n  ", (got, "dim")))
    if len(missed) > misses > 0:
        parts.append(Text(f"\n… and {count(len(missed) - misses, 'more question')}: --misses {len(missed)}", "dim"))
    return Group(*parts)


def _scores(view: "Evaluation") -> list[tuple[str, RenderableType]]:
    rows: list[tuple[str, RenderableType]] = [
        ("questions", Text(count(view.questions))),
        ("MRR@10", Text(f"{view.mrr:.3f}", "bold")),
        ("nDCG@10", Text(f"{view.ndcg:.3f}")),
        ("Recall@10", Text(f"{view.recall:.3f}")),
    ]
    rows += [(f"best page in first {depth}", Text(f"{rate:.1%}")) for depth, rate in view.hit_rates.items()]
    if view.without_answer:
        rows.append(("no answer, none shown", Text(f"{view.declined} of {view.without_answer}")))
    for name, age in (("last checked", view.checked_age_seconds), ("last changed", view.changed_age_seconds)):
        if age is not None:
            rows.append((name, Text(f"{duration(age)} ago (median of first results)")))
    return rows


def comparison(view: "Comparison", first: str, second: str) -> RenderableType:
    names = {"mrr": "MRR@10", "ndcg": "nDCG@10", "recall": "Recall@10"}
    rows = []
    for key, name in names.items():
        if gap := view.differences.get(key):
            scores = (f"{getattr(each, key):.3f}" for each in (view.first, view.second))
            rows.append((name, *scores, f"{gap.mean:+.3f}", f"{gap.low:+.3f} to {gap.high:+.3f}"))
    head = ("*score", f">{clean(first)}", f">{clean(second)}", ">difference", "95 % range")
    drawn = table(head, rows, none=("No question has an answer.",))
    return Group(drawn, Text("A range that includes 0 may be chance.", "dim")) if rows else drawn
