"""How well the offline scorer tells which links are about a keyword."""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from afresh.links.score import LinkJudgement, LinkToScore, normalize_keyword
from afresh.models.offline_scorer import OfflineLinkScorer
from eval.sets import HERE

LINKS = "links"
ALL = "all"
# What precision and recall of "at least one right keyword" may not fall below: 0.9 is promised for all links,
# the others stand a little below what was measured when the rules were frozen.
FLOORS = {"tuned": (0.97, 0.97), "held out": (0.96, 0.96), "fresh": (0.93, 0.76), ALL: (0.9, 0.9)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A link with the keywords that it is about, as a reader says."""

    site: str
    part: str
    link: LinkToScore
    wanted: frozenset[str]


@dataclass(frozen=True, slots=True)
class LinkFigures:
    """What was counted on some of the links."""

    part: str
    links: int
    about_one: int  # links that are about a keyword
    scored: int  # links that were given one
    right: int  # links that were given one that they are about
    keywords: tuple[int, int, int]  # wanted, given, right ones

    @property
    def precision(self) -> float:
        """Share of the scored links that have at least one right keyword."""
        return self.right / self.scored if self.scored else 0.0

    @property
    def recall(self) -> float:
        """Share of the links about a keyword that were given at least one right keyword."""
        return self.right / self.about_one if self.about_one else 0.0


def keywords_by_site() -> dict[str, list[str]]:
    """What each site is watched for, as the settings spell it."""
    sites: Mapping[str, Sequence[str]] = json.loads((HERE / "link_keywords.json").read_text("utf-8"))
    return {site: [normalize_keyword(word) for word in words] for site, words in sites.items()}


def labelled() -> list[Labelled]:
    """All links with their labels."""
    lines = (HERE / "links.jsonl").read_text("utf-8").splitlines()
    return [
        Labelled(
            site=each["site"],
            part=each["part"],
            link=LinkToScore(each["url"], each["text"]),
            wanted=frozenset(map(normalize_keyword, each["wanted"])),
        )
        for each in map(json.loads, lines)
    ]


async def measure_links() -> list[LinkFigures]:
    """The figures of every part of the set, and of all of it."""
    links = labelled()
    scorer = OfflineLinkScorer()
    given: dict[LinkToScore, Set[str]] = {}
    for site, keywords in keywords_by_site().items():
        verdicts = await scorer.score([each.link for each in links if each.site == site], keywords)
        given.update((LinkToScore(each.url, each.text), _named(each)) for each in verdicts)
    split = {part: [each for each in links if part in (each.part, ALL)] for part in FLOORS}
    return [_figures(part, mine, given) for part, mine in split.items()]


def link_misses(figures: Sequence[LinkFigures]) -> Iterator[str]:
    """Every way in which figures break their floors, as a sentence."""
    for each in figures:
        measured = (each.precision, each.recall)
        for name, value, floor in zip(("precision", "recall"), measured, FLOORS[each.part], strict=True):
            if value < floor:
                yield f"{LINKS}, {each.part}: {name} {value:.3f} is below its floor {floor}"


def links_as_json(figures: Sequence[LinkFigures]) -> dict[str, object]:
    """The figures as data."""
    return {
        "set": LINKS,
        "parts": {
            each.part: {
                "links": each.links,
                "about_one": each.about_one,
                "precision": round(each.precision, 4),
                "recall": round(each.recall, 4),
                "keywords": dict(zip(("wanted", "given", "right"), each.keywords, strict=True)),
            }
            for each in figures
        },
    }


def _figures(part: str, links: Sequence[Labelled], given: Mapping[LinkToScore, Set[str]]) -> LinkFigures:
    pairs = [(each.wanted, given.get(each.link, frozenset())) for each in links]
    return LinkFigures(
        part,
        len(pairs),
        sum(bool(wanted) for wanted, _ in pairs),
        sum(bool(found) for _, found in pairs),
        sum(bool(wanted & found) for wanted, found in pairs),
        (
            sum(len(wanted) for wanted, _ in pairs),
            sum(len(found) for _, found in pairs),
            sum(len(wanted & found) for wanted, found in pairs),
        ),
    )


def _named(verdict: LinkJudgement) -> frozenset[str]:
    return frozenset(verdict.keywords)
