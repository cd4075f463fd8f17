"""What scorers said of links, in memory."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from afresh.core.link_score import Answered, AskedLink, Unasked, Weighing, lacking, worth
from afresh.core.model import Run, RunState, SourceId
from afresh.core.tally import total
from afresh.testing.memory.tables import Tables


class MemoryLinkScores:
    """Answers of scorers by target and text, and the worth that follows."""

    tables: Tables

    async def links_seal(self, source: SourceId) -> str | None:
        """How all links were scored last; "" if some are not, None if none ever were."""
        return self.tables.seals.get(source)

    async def unasked_links(
        self,
        source: SourceId,
        recipe: str,
        keywords: Sequence[str],
        among: Sequence[AskedLink] | None = None,
    ) -> list[Unasked]:
        """Links with texts that a scorer was not asked about, each with the keywords that are left."""
        shown = self._shown(source)
        wanted = shown if among is None else [link for link in shown if link in set(among)]
        left = [
            Unasked(link, lacking(self.tables.answers.get((source, link)), recipe, keywords))
            for link in wanted
        ]
        return [each for each in left if each.keywords]

    async def unasked_count(self, source: SourceId, recipe: str, keywords: Sequence[str]) -> int:
        """How many links with texts a scorer was not asked about, or not for all keywords."""
        return len(await self.unasked_links(source, recipe, keywords))

    async def asked_count(self, source: SourceId) -> int:
        """How many links with texts a scorer was ever asked about."""
        return sum(owner == source for owner, _ in self.tables.answers)

    async def keep_answers(
        self,
        run: Run,
        answers: Sequence[Answered],
        weighing: Weighing,
        counts: Mapping[str, int],
        now: datetime,
    ) -> None:
        """Write what a scorer said, score its links by it and count what that took."""
        with self.tables.transaction():
            for answer in answers:
                key = run.source_id, answer.link
                known = self.tables.answers.get(key)
                if (run.source_id, answer.link.url) in self.tables.links:
                    self.tables.answers[key] = known.joined(answer) if known else answer
            self._weigh(run.source_id, weighing, {answer.link.url for answer in answers})
            if (current := self.tables.runs.get(run.id)) is not None:
                summed = total([current.counts, counts])
                self.tables.runs[run.id] = replace(current, counts=summed, worked_at=now)

    async def weigh_links(self, source: SourceId, weighing: Weighing, seal: str | None) -> None:
        """Score all links of a source anew by what is on record; answers for texts that are gone, go."""
        shown = set(self._shown(source))
        with self.tables.transaction():
            gone = [key for key in self.tables.answers if key[0] == source and key[1] not in shown]
            for key in gone:
                del self.tables.answers[key]
            self._weigh(source, weighing, {url for owner, url in self.tables.worths if owner == source})
            self._weigh(source, weighing, {link.url for link in shown})
            self.tables.seals[source] = seal

    async def link_scores(self, source: SourceId) -> dict[str, float]:
        """The links that are worth something: address to score."""
        worths = self.tables.worths.items()
        return {url: found.score for (owner, url), found in worths if owner == source and found.score}

    async def calls_since(self, moment: datetime) -> int:
        """Calls to models that all runs of this store have made since a moment."""
        runs = [
            run
            for run in self.tables.runs.values()
            if run.state is RunState.RUNNING or (run.finished_at or run.started_at) > moment
        ]
        return sum(run.counts.get("ai_calls", 0) for run in runs)

    def _shown(self, source: SourceId) -> list[AskedLink]:
        edges = [
            edge for row in self.tables.pages_of(source) for edge in self.tables.edges.get(row.page.id, ())
        ]
        return list(dict.fromkeys(AskedLink(edge.url, edge.text) for edge in edges))

    def _weigh(self, source: SourceId, weighing: Weighing, urls: set[str]) -> None:
        given: dict[str, list[Answered]] = defaultdict(list)
        for (owner, link), answer in self.tables.answers.items():
            if owner == source and link.url in urls:
                given[link.url].append(answer)
        for url in urls:
            found = worth(given[url], weighing)
            self.tables.worths.pop((source, url), None)
            if found.keywords:
                self.tables.worths[source, url] = found
