"""Score links during a run, and queue the best links first."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import TYPE_CHECKING

from afresh.aio import run_until_stopped
from afresh.errors import ScoreError, ScorerUnavailable
from afresh.links.score import KeywordWeights, LinkToScore, ScoredLink, UnscoredLink, normalize_scores, total_score
from afresh.model.records import ListedUrl, Run, RunMode, SourceId, Visit
from afresh.ops.failpoints import failpoint
from afresh.ports import Clock, LinkScorer
from afresh.store.store import Store

if TYPE_CHECKING:
    from afresh.crawl.context import RunContext

MAX_SEEN = 200_000  # links that a run remembers; beyond that, some are looked up in the store again
BATCH_PAGES = 8  # pages that are queued at a time


class LinkScoring:
    """Scores the links of a run; links that remain after an error are scored in the next run."""

    def __init__(
        self,
        store: Store,
        scorer: LinkScorer,
        weighing: KeywordWeights,
        clock: Clock,
        stopping: asyncio.Event,
        guesser: LinkScorer | None = None,
    ) -> None:
        self.weighing = weighing
        self.is_free = scorer.is_free  # calls cost nothing, so batches need not be full
        self._guesser = guesser  # a free scorer, whose scores only set the order of pages and are not stored
        self._unguessed: dict[LinkToScore, None] = {}
        self._guesses: dict[str, float] = {}  # URL → guessed score
        self._has_guessed = False
        self.last_error: str | None = None  # why links were not scored
        self.unscored = 0  # number of links without a score, counted at the end of a run
        self._store = store
        self._scorer = scorer
        self._clock = clock
        self._stopping = stopping
        self._keywords = tuple(weighing.weights)
        self._seen: set[int] = set()
        self._new: list[LinkToScore] = []  # links of this run whose stored scores were not looked up yet
        self._ready: dict[tuple[str, ...], dict[LinkToScore, None]] = defaultdict(dict)  # links to score, by keywords
        self._left: set[LinkToScore] = set()  # links that the scorer did not answer
        self._down = False
        self._enough = asyncio.Event()
        self._over = False
        self._sealed = False
        self._counted = (scorer.calls, scorer.tokens)  # the part that was already added to the counts of the run
        self._asking = asyncio.Lock()

    def note(self, visits: Sequence[Visit]) -> None:
        if self._down and self._guesser is None:
            return
        for visit in visits:
            for link in visit.content.links or ():
                pair = LinkToScore(link.url, link.text)
                if (key := hash(pair)) not in self._seen:
                    self._seen.add(key)
                    self._new.append(pair)
        if len(self._seen) > MAX_SEEN:
            self._seen.clear()
        if len(self._new) >= self._scorer.batch:
            self._enough.set()

    @asynccontextmanager
    async def beside(self, run: Run) -> AsyncIterator[None]:
        """Score full batches of links in the background while the `with` block runs."""
        self._over = False
        asking = asyncio.create_task(self._ask_full_batches(run))
        try:
            yield
        except BaseException:
            asking.cancel()
            await asyncio.wait({asking})
            raise
        self._over = True
        self._enough.set()
        await asking

    async def _ask_full_batches(self, run: Run) -> None:
        while not self._over:
            await self._enough.wait()
            self._enough.clear()
            await self.ask(run, full=True)

    async def ask(self, run: Run, *, full: bool = False) -> None:
        """Score the collected links; with `full`, only full batches."""
        if full and not self._may_ask:
            return
        async with self._asking:
            await self._look_up(run)
            for keywords, links in self._ready.items():
                while len(links) >= (self._scorer.batch if full else 1) and self._may_ask:
                    batch = list(islice(links, self._scorer.batch))
                    for link in batch:
                        del links[link]
                    await self._ask(run, batch, keywords)
            if self._down:  # the remaining links are counted at the end of the run
                self._ready.clear()
                self._left.clear()
                self._new = self._new if self._guesser else []

    async def guesses(self, run: Run) -> Mapping[str, float]:
        """Return scores by URL for links without a stored score, guessed by a scorer that costs nothing."""
        if self._guesser is None:
            return {}
        async with self._asking:
            if not self._has_guessed and not self._sealed:
                self._unguessed.update(dict.fromkeys(each.link for each in await self._unasked(run.source_id, None)))
            await self._look_up(run)
            self._has_guessed = True
            links, self._unguessed = list(self._unguessed), {}
            for judgement in await self._guesser.score(links, self._keywords) if links else ():
                score = total_score(judgement.keywords, self.weighing.weights, self.weighing.unknown)
                self._guesses[judgement.url] = max(score, self._guesses.get(judgement.url, 0.0))
            return self._guesses

    async def _look_up(self, run: Run) -> None:
        new, self._new = self._new, []
        if new:
            self._sort(await self._unasked(run.source_id, new))

    async def begin(self, run: Run) -> None:
        """Find out whether all stored links are scored, so that only new ones need scores."""
        self._sealed = await self._is_sealed(run.source_id)

    async def finish(self, run: Run) -> None:
        """Score all links without a score, also those of earlier runs."""
        if not self._sealed and not self._down:
            async with self._asking:
                self._new.clear()
                self._ready.clear()
                self._sort(await self._unasked(run.source_id, None))
        await self.ask(run)
        if self._down:
            asked = self._scorer.recipe, self._keywords
            self.unscored = await self._store.link_scores.count_unasked(run.source_id, *asked)
        else:
            self.unscored = len(self._left) + sum(map(len, self._ready.values()))
        if self._stopping.is_set() and self.unscored:
            self.last_error = self.last_error or "stopped"
        await self._keep(run, [])

    async def settle(self, source: SourceId) -> None:
        """Recompute the total scores of the links of a source, unless they are up to date."""
        if not await self._is_sealed(source):
            seal = "" if self.unscored else self.weighing.seal(self._scorer.recipe)
            await self._store.link_scores.weigh(source, self.weighing, seal)

    async def saved(self, run: Run) -> tuple[int, int]:
        """Return how many links were scored before this run, and how many calls that saved."""
        links = max(0, await self._store.link_scores.count_asked(run.source_id) - run.counts.get("links_scored", 0))
        return links, 0 if self.is_free else -(-links // self._scorer.batch)

    async def _is_sealed(self, source: SourceId) -> bool:
        return await self._store.link_scores.seal(source) == self.weighing.seal(self._scorer.recipe)

    @property
    def _may_ask(self) -> bool:
        return not self._down and not self._stopping.is_set()

    async def _unasked(self, source: SourceId, among: Sequence[LinkToScore] | None) -> Sequence[UnscoredLink]:
        return await self._store.link_scores.unasked(source, self._scorer.recipe, self._keywords, among)

    def _sort(self, unasked: Sequence[UnscoredLink]) -> None:
        if self._guesser is not None:
            self._unguessed.update(dict.fromkeys(each.link for each in unasked))
        for each in unasked:
            if each.link not in self._left and not self._down:
                self._ready[each.keywords][each.link] = None

    async def _ask(self, run: Run, links: Sequence[LinkToScore], keywords: tuple[str, ...]) -> None:
        """Score links with one call, and store the answers."""
        is_whole = True  # the answer is complete, so that a missing link matches no keyword
        try:
            judgements = await run_until_stopped(self._scorer.score(links, keywords), self._stopping)
        except ScoreError as error:
            self.last_error = str(error)
            self._down = isinstance(error, ScorerUnavailable)
            judgements, is_whole = error.found, False
        if judgements is None:
            self._left.update(links)
            return
        found = {LinkToScore(each.url, each.text): each for each in judgements}
        self._left.update(link for link in links if not is_whole and link not in found)
        answers = [
            ScoredLink(
                link=link,
                recipe=self._scorer.recipe,
                asked=frozenset(keywords),
                scores=normalize_scores(found[link].keywords) if link in found else {},
                comment=found[link].comment if link in found else "",
            )
            for link in links
            if is_whole or link in found
        ]
        for link in (answer.link for answer in answers):  # the answer replaces the guess, even if no keyword matches
            self._unguessed.pop(link, None)
            self._guesses.pop(link.url, None)
        failpoint("links.answered")
        await self._keep(run, answers)
        failpoint("links.kept")

    async def _keep(self, run: Run, answers: Sequence[ScoredLink]) -> None:
        calls, tokens = self._scorer.calls, self._scorer.tokens
        spent = {"ai_calls": calls - self._counted[0], "ai_tokens": tokens - self._counted[1]}
        counts = {"links_scored": len(answers), **spent, "link_calls": spent["ai_calls"]}
        if any(counts.values()):
            await self._store.link_scores.keep(run, answers, self.weighing, counts, self._clock())
        self._counted = (calls, tokens)


async def count_scores(scoring: LinkScoring | None, run: Run, counts: dict[str, int], notes: list[str]) -> None:
    """Count unscored links, and the links and calls that stored scores saved; add a note on unscored links."""
    if scoring is None or run.mode is RunMode.CHECK:
        return
    counts["links_unscored"] = scoring.unscored
    counts["links_saved"], counts["link_calls_saved"] = await scoring.saved(run)
    if scoring.unscored:
        links = "1 link is" if scoring.unscored == 1 else f"{scoring.unscored:,} links are"
        notes.append(f"{links} not scored; the next run tries again: {scoring.last_error}")


async def update_scores(store: Store, scoring: LinkScoring | None, run: Run) -> None:
    """Recompute the total scores at the end of a run; without keywords, delete them."""
    if run.mode is RunMode.CHECK:
        return
    if scoring is not None:
        await scoring.settle(run.source_id)
    elif await store.link_scores.seal(run.source_id) is not None:
        await store.link_scores.weigh(run.source_id, KeywordWeights(weights={}), None)


class BestFirst:
    def __init__(self, context: "RunContext", scoring: LinkScoring) -> None:
        self._context = context
        self._scoring = scoring
        self._first = True

    async def admit(self) -> bool:
        """Queue the best links; return False if there are none, or the run has enough pages."""
        context, store = self._context, self._context.tools.store
        await self._scoring.ask(context.run, full=not self._scoring.is_free)
        waiting, good = await self._ranked()
        if context.stopping.is_set():
            context.unfilled = context.unfilled or bool(waiting)
            return False
        number = max(1, min(BATCH_PAGES, good or BATCH_PAGES))
        for start in range(0, len(waiting), number):
            some = waiting[start : start + number]
            listed = {item.url for item in context.held_back}
            queued = await store.queue.enqueue(context.run, some, context.limits, context.tools.clock())
            # Listed URLs are stored in the listing only after they are queued as pages.
            taken = {item.url for item in some}
            if found := [item for item in context.held_back if item.url in taken]:
                await store.listings.record(context.source.id, found, complete=False)
                context.held_back = [item for item in context.held_back if item.url not in taken]
            if queued:
                return True
            if any(item.url not in listed for item in some):
                break  # the maximum number of pages is reached
        await store.links.close_frontier(context.source.id, context.fingerprint, context.rules.max_depth)
        return False

    async def _ranked(self) -> tuple[list[ListedUrl], int]:
        """Return the URLs that can be queued, best first, and how many have a score."""
        context, store = self._context, self._context.tools.store
        waiting = {item.url: item for item in [*context.held_back, *(await store.queue.frontier(context.source.id))]}
        near = [item for item in waiting.values() if item.depth <= context.rules.max_depth]
        scores = await self._known_scores()
        if near and not scores and self._first:  # no link has a score yet, so score a partial batch
            self._first = False
            await self._scoring.ask(context.run)
            scores = await self._known_scores()
        good = sum(1 for item in near if item.url in scores)
        return sorted(near, key=lambda item: (-scores.get(item.url, 0.0), item.depth)), good

    async def _known_scores(self) -> Mapping[str, float]:
        known = await self._context.tools.store.link_scores.of_source(self._context.source.id)
        guessed = await self._scoring.guesses(self._context.run)
        return {**known, **{url: max(score, known.get(url, 0.0)) for url, score in guessed.items()}}


def applies(context: "RunContext") -> bool:
    """Return whether the run reads the best pages first: only a run that finds its pages by links can do so."""
    tools = context.tools
    asked = tools.best_first and tools.scoring is not None
    return asked and context.starts_at_root and context.run.mode in (RunMode.CRAWL, RunMode.REFRESH)
