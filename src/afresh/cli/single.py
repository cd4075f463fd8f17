"""One page above its text, and one version among others."""

from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from afresh.cli.pieces import facts, text
from afresh.model.reports import FoundVersion, OpenedPage
from afresh.model.versions import Match
from afresh.present.safe_text import clean
from afresh.present.wording import ago, label

SHOWN = 20  # versions named in one line
HOW = {
    Match.EXACT: "exactly what was asked for",
    Match.RANGE: "the newest within the range",
    Match.NEAREST_LOWER: "the nearest lower one: nothing that is here fits",
    Match.LATEST: "the latest",
    Match.UNVERSIONED: "the source without a version",
}


def heading(view: OpenedPage, now: datetime) -> RenderableType:
    """What stands above an opened page on a terminal: whose it is and how fresh."""
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
    """The version that is meant, how it was matched, and the others."""
    found = Text(clean(label(view.source, view.version)), style="bold")
    found.append(f"  {HOW[view.match]}", "dim")
    there = [clean(each) for each in view.versions[:SHOWN]]
    there += [f"and {len(view.versions) - SHOWN} more"] if len(view.versions) > SHOWN else []
    there += ["one without a version"] if view.unversioned else []
    pairs: list[tuple[str, RenderableType]] = [
        ("address", text(view.url)),
        ("there are", Text(", ".join(there), overflow="fold")),
    ]
    return Group(found, facts(pairs))
