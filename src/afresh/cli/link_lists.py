"""Links as a list: what each is worth, for which keywords, and where it stands."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from afresh.cli.pieces import empty, short, table, text
from afresh.errors import UsageError
from afresh.links.score import usual
from afresh.model.reports import LinkView
from afresh.present.wording import count

if TYPE_CHECKING:
    from afresh.kb import KnowledgeBase


def links(views: Sequence[LinkView], *, whole: bool = False) -> RenderableType:
    """Links, best first as given; scores only where some link has one."""
    if not views:
        return empty("No links match.")
    if all(view.score is None for view in views):
        return table((">pages", "text", "*address"), (_plain(view) for view in views))
    columns = (">score", "keywords", ">pages", "text", "*address")
    if whole:
        rows = ((*_scored(view), *_reasons(view)) for view in views)
        return table((*columns, "why", "on"), rows, less=("pages",))
    return table(columns, map(_scored, views), less=("pages", "text"))


async def why_none(kb: "KnowledgeBase", label: str, page: str | None, keyword: str | None) -> list[str]:
    """Why no link is listed, where that lies in what was asked for."""
    reasons = []
    if page:
        try:
            await kb.pages.explain(page, within=label)
        except UsageError as unknown:
            reasons.append(str(unknown))
    known = ((await kb.sources.view(label)).keywords or {}) if keyword else {}
    if keyword and usual(keyword) not in known:
        has = (
            f"the keywords {', '.join(known)}"
            if known
            else "no keywords; `afresh crawl … --keywords` sets some"
        )
        reasons.append(f"{label} is not scored by {usual(keyword)!r}: it has {has}")
    return reasons


def _plain(view: LinkView) -> tuple[str | Text, ...]:
    return count(view.page_count), text(short(view.text)), text(view.url, "blue")


def _scored(view: LinkView) -> tuple[str | Text, ...]:
    score = text(None) if view.score is None else text(f"{view.score:.2f}", "bold")
    return score, text(_keywords(view.keywords)), *_plain(view)


def _reasons(view: LinkView) -> tuple[Text, Text]:
    return text(view.comment), text(next(iter(view.pages), None), "blue")


def _keywords(keywords: Mapping[str, float]) -> str:
    """`budget, contact 0.5`: a whole score goes without saying."""
    return ", ".join(word if score >= 1 else f"{word} {score:.2g}" for word, score in keywords.items())
