"""What would be read of a source that is not kept yet, as tables."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from afresh.cli.details import plan
from afresh.cli.pieces import facts, text
from afresh.errors import UsageError
from afresh.model.overview import Preview
from afresh.model.reports import Plan
from afresh.present.safe_text import clean
from afresh.present.wording import count

if TYPE_CHECKING:
    from afresh.kb import KnowledgeBase

SHOWN = 10  # links that are told one by one


async def plan_or_preview(kb: "KnowledgeBase", target: str) -> Plan | Preview:
    """The plan of a source that is kept, else what would be read of a target."""
    try:
        return await kb.sources.plan(target)
    except UsageError:
        if not _may_be_target(target):
            raise
    return await kb.sources.preview(target, here=True)


def _may_be_target(typed: str) -> bool:
    """Whether it can be an address, a path or a repository, rather than a name that was mistyped."""
    return "://" in typed or ("@" not in typed and any(sign in typed for sign in "/.~"))


def told(view: Plan | Preview, now: datetime) -> RenderableType:
    """A plan or a preview."""
    return preview(view) if isinstance(view, Preview) else plan(view, now)


def preview(view: Preview) -> RenderableType:
    """What would be read of a target."""
    head = Text.assemble((clean(view.title or view.name), "bold"), f" · {clean(view.kind)}, not kept yet")
    if view.known:
        head = Text.assemble((clean(view.known), "bold"), f" · {clean(view.kind)}, kept already")
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
    more = [f"and {count(number - SHOWN)} more"] if number > SHOWN else []
    return "\n".join([head, *(f"  {clean(line)}" for line in lines[:SHOWN]), *more])
