"""Scores the main content of HTML pages by word F1, per page type: `python -m eval.extraction` (see README.md)."""

import argparse
import hashlib
import json
import lzma
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from afresh.extract.html.html import extract_html
from afresh.model.fetch import Body
from eval.__main__ import SHARED

PAGES = SHARED / "data" / "extraction-wcxb-dev" / "pages.jsonl.xz"

_IMAGE = re.compile(r"!\[((?:[^\]\\]|\\.)*)\]\((?:<[^>]*>|[^()\s]*(?:\([^()]*\)[^()\s]*)*)(?:\s\"[^\"]*\")?\)")
_LINK = re.compile(r"\[((?:[^\[\]\\]|\\.)*)\]\((?:<[^>]*>|[^()\s]*(?:\([^()]*\)[^()\s]*)*)(?:\s\"[^\"]*\")?\)")
_WORD = re.compile(r"\w+")
APART = 3  # one page of so many is held out


@dataclass(frozen=True, slots=True)
class Scored:
    """The score of one page."""

    id: str
    type: str
    precision: float
    recall: float
    f1: float
    seconds: float
    markdown: str
    page: Mapping[str, str]


def held_out(name: str) -> bool:
    """Whether a page is in the third that no rule was tuned on."""
    return hashlib.sha256(name.encode()).digest()[0] % APART == 0


def plain(markdown: str) -> str:
    """Reduce Markdown to its text: links to their words; images to nothing."""
    return _LINK.sub(r"\1", _IMAGE.sub(" ", markdown)).replace("\\", "")


def word_scores(text: str, truth: str) -> tuple[float, float, float]:
    """Return precision, recall and F1 of the words of a text, as multisets."""
    got, wanted = (Counter(_WORD.findall(each.lower())) for each in (text, truth))
    common = (got & wanted).total()
    precision, recall = common / max(1, got.total()), common / max(1, wanted.total())
    return precision, recall, 2 * precision * recall / max(1e-9, precision + recall)


def scored(pages: Path, *, apart: bool) -> list[Scored]:
    """Extract and score the pages of the held-out third (`apart`) or of the other two."""
    with lzma.open(pages, "rt", encoding="utf-8") as lines:
        read = [page for line in lines if held_out((page := json.loads(line))["id"]) == apart]
    found = []
    for page in read:
        body = Body(url=page["url"], data=page["html"].encode(), charset="utf-8")
        start = time.process_time()
        markdown = extract_html(body).markdown
        took = time.process_time() - start
        scores = word_scores(plain(markdown), page["main_content"])
        found.append(Scored(page["id"], page["type"], *scores, took, markdown, page))
    return found


def table(found: Iterable[Scored]) -> str:
    """Return a table of means per type."""
    by_type: dict[str, list[Scored]] = defaultdict(list)
    for each in found:
        by_type["all"].append(each)
        by_type[each.type].append(each)
    rows = ["| type (pages) | P | R | F1 | CPU ms |", "|---|---|---|---|---|"]
    for name, some in sorted(by_type.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        means = (fmean(getattr(each, part) for each in some) for part in ("precision", "recall", "f1"))
        milliseconds = 1000 * fmean(each.seconds for each in some)
        rows.append(f"| {name} ({len(some)}) | {' | '.join(f'{mean:.3f}' for mean in means)} | {milliseconds:.1f} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m eval.extraction", description=__doc__)
    parser.add_argument("--held-out", action="store_true", help="the third that no rule was tuned on")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="also list the N worst pages of each type")
    asked = parser.parse_args()
    found = scored(PAGES, apart=asked.held_out)
    print(table(found))
    for kind in sorted({each.type for each in found}):
        for each in sorted((each for each in found if each.type == kind), key=lambda each: each.f1)[: asked.worst]:
            print(f"{kind} {each.id} {each.precision:.2f} {each.recall:.2f} {each.f1:.2f} {each.page['url']}")


if __name__ == "__main__":
    main()
