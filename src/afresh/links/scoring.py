"""Score links during a run, and read the best links first."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from afresh.errors import ScoreError, ScorerUnavailable
from afresh.links.score import (
    KeywordWeights,
    LinkToScore,
    ScoredLink,
    UnscoredLink,
    total_score,
    usual_scores,
)
from afresh.model.records import ListedUrl, Run, RunMode, SourceId, Visit
from afresh.ops.failpoints import failpoint
from afresh.ports import Clock, LinkScorer
from afresh.store.store import Store

if TYPE_CHECKING:
    from afresh.crawl.context import RunContext


class LinkGuesses:
    """Provisional scores from a free scorer; they decide what is read first and are never stored."""

    def __init__(self, scorer: LinkScorer, weighing: KeywordWeights) -> None:
        self.begun = False  # whether unscored links of earlier runs were added
        self._scorer = scorer
        self._weighing = weighing
        self._open: dict[LinkToScore, None] = {}
        self._worths: dict[str, float] = {}

    def note(self, unasked: Sequence[UnscoredLink]) -> None:
        """Add links that wait for a score."""
        self._open.update(dict.fromkeys(each.link for each in unasked))

    def forget(self, answers: Sequence[ScoredLink]) -> None:
        """Remove links that are now scored: the real score counts, even if no keyword fits."""
        for answer in answers:
            self._open.pop(answer.link, None)
            self._worths.pop(answer.link.url, None)

    async def worths(self) -> Mapping[str, float]:
        """Return the guessed scores by URL, for links with a score."""
        self.begun = True
        links, self._open = list(self._open), {}
        weights, unknown = self._weighing.weights, self._weighing.unknown
        for said in await self._scorer.score(links, tuple(weights)) if links else ():
            score = total_score(said.keywords, weights, unknown)
            self._worths[said.url] = max(score, self._worths.get(said.url, 0.0))
        return self._worths


T = TypeVar("T")
REMEMBERED = 200_000  # links with texts seen in a run; beyond that, some are looked up again


class ScoringStopped(Exception):
    """The run was stopped during a call of the scorer."""


class LinkScoring:
    """Scores the links of one run; after an error, links stay unscored for the next run."""

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
        self._guesses = LinkGuesses(guesser, weighing) if guesser else None
        self.trouble: str | None = None  # why links stay unscored
        self.unscored = 0  # counted at the end of a run
        self._store = store
        self._scorer = scorer
        self._clock = clock
        self._stopping = stopping
        self._keywords = tuple(weighing.weights)
        self._met: set[int] = set()
        self._new: list[LinkToScore] = []  # seen in this run, not yet looked up
        self._ready: dict[tuple[str, ...], dict[LinkToScore, None]] = defaultdict(dict)  # by keywords
        self._left: set[LinkToScore] = set()  # without an answer
        self._down = False
        self._enough = asyncio.Event()
        self._over = False
        self._sealed = False
        self._told = (scorer.calls, scorer.tokens)  # calls and tokens already counted
        self._asking = asyncio.Lock()

    @property
    def is_free(self) -> bool:
        """Return whether calls are free, so that batches need not be full."""
        return self._scorer.is_free

    def note(self, visits: Sequence[Visit]) -> None:
        """Collect the links of visits that were just written; if the scorer is down, only for guesses."""
        if self._down and self._guesses is None:
            return
        for visit in visits:
            for link in visit.harvest.links or ():
                pair = LinkToScore(link.url, link.text)
                if (met := hash(pair)) not in self._met:
                    self._met.add(met)
                    self._new.append(pair)
        if len(self._met) > REMEMBERED:
            self._met.clear()
        if len(self._new) >= self._scorer.batch:
            self._enough.set()

    @asynccontextmanager
    async def beside(self, run: Run) -> AsyncIterator[None]:
        """Score full batches in the background; on exit, wait for the current call."""
        self._over = False
        asking = asyncio.create_task(self._ask_on(run))
        try:
            yield
        except BaseException:
            asking.cancel()
            await asyncio.wait({asking})
            raise
        self._over = True
        self._enough.set()
        await asking

    async def _ask_on(self, run: Run) -> None:
        while not self._over:
            await self._enough.wait()
            self._enough.clear()
            await self.ask(run, full=True)

    async def ask(self, run: Run, *, full: bool = False) -> None:
        """Score the links collected so far; with `full`, only in full batches."""
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
            if self._down:  # the end of the run counts what is left
                self._ready.clear()
                self._left.clear()
                self._new = self._new if self._guesses else []

    async def guesses(self, run: Run) -> Mapping[str, float]:
        """Return guessed scores of links that are not scored yet, by URL, from the free scorer."""
        if self._guesses is None:
            return {}
        async with self._asking:
            if not self._guesses.begun and not self._sealed:
                self._guesses.note(await self._unasked(run.source_id, None))
            await self._look_up(run)
            return await self._guesses.worths()

    async def _look_up(self, run: Run) -> None:
        new, self._new = self._new, []
        if new:
            self._sort(await self._unasked(run.source_id, new))

    async def begin(self, run: Run) -> None:
        """Check whether all stored links are scored; then only links found by this run matter."""
        self._sealed = await self._is_sealed(run.source_id)

    async def finish(self, run: Run) -> None:
        """Score every remaining link, including those of earlier runs."""
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
            self.trouble = self.trouble or "stopped"
        await self._keep(run, [])

    async def settle(self, source: SourceId) -> None:
        """Recompute the stored scores at the end of a run, unless they are up to date."""
        if not await self._is_sealed(source):
            seal = "" if self.unscored else self.weighing.seal(self._scorer.recipe)
            await self._store.link_scores.weigh(source, self.weighing, seal)

    async def saved(self, run: Run) -> tuple[int, int]:
        """Return the number of links that needed no new score, and the calls that this saved."""
        scored = run.counts.get("links_scored", 0)
        links = max(0, await self._store.link_scores.count_asked(run.source_id) - scored)
        return links, 0 if self.is_free else -(-links // self._scorer.batch)

    async def _is_sealed(self, source: SourceId) -> bool:
        return await self._store.link_scores.seal(source) == self.weighing.seal(self._scorer.recipe)

    @property
    def _may_ask(self) -> bool:
        return not self._down and not self._stopping.is_set()

    async def _unasked(self, source: SourceId, among: Sequence[LinkToScore] | None) -> Sequence[UnscoredLink]:
        return await self._store.link_scores.unasked(source, self._scorer.recipe, self._keywords, among)

    def _sort(self, unasked: Sequence[UnscoredLink]) -> None:
        if self._guesses is not None:
            self._guesses.note(unasked)
        for each in unasked:
            if each.link not in self._left and not self._down:
                self._ready[each.keywords][each.link] = None

    async def _ask(self, run: Run, links: Sequence[LinkToScore], keywords: tuple[str, ...]) -> None:
        """Score links in one call and store them in one transaction; unanswered links stay unscored."""
        is_whole = True  # in a complete answer, a missing link fits no keyword
        try:
            verdicts = await self._unless_stopped(self._scorer.score(links, keywords))
        except ScoringStopped:
            self._left.update(links)
            return
        except ScoreError as error:
            self.trouble = str(error)
            self._down = isinstance(error, ScorerUnavailable)
            verdicts, is_whole = error.found, False
        said = {LinkToScore(each.url, each.text): each for each in verdicts}
        self._left.update(link for link in links if not is_whole and link not in said)
        answers = [
            ScoredLink(
                link=link,
                recipe=self._scorer.recipe,
                asked=frozenset(keywords),
                scores=usual_scores(said[link].keywords) if link in said else {},
                comment=said[link].comment if link in said else "",
            )
            for link in links
            if is_whole or link in said
        ]
        if self._guesses is not None:
            self._guesses.forget(answers)
        failpoint("links.answered")
        await self._keep(run, answers)
        failpoint("links.kept")

    async def _keep(self, run: Run, answers: Sequence[ScoredLink]) -> None:
        calls, tokens = self._scorer.calls, self._scorer.tokens
        spent = {"ai_calls": calls - self._told[0], "ai_tokens": tokens - self._told[1]}
        counts = {"links_scored": len(answers), **spent, "link_calls": spent["ai_calls"]}
        if any(counts.values()):
            await self._store.link_scores.keep(run, answers, self.weighing, counts, self._clock())
        self._told = (calls, tokens)

    async def _unless_stopped(self, call: Awaitable[T]) -> T:
        """Return the result of a call; raise ScoringStopped if the run is stopped first."""
        task, stop = asyncio.ensure_future(call), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ScoringStopped
            return await task
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})


async def count_scores(
    scoring: LinkScoring | None, run: Run, counts: dict[str, int], notes: list[str]
) -> None:
    """Add the numbers of unscored links and saved calls to the counts, and a note about unscored links."""
    if scoring is None or run.mode is RunMode.CHECK:
        return
    counts["links_unscored"] = scoring.unscored
    counts["links_saved"], counts["link_calls_saved"] = await scoring.saved(run)
    if scoring.unscored:
        links = "1 link is" if scoring.unscored == 1 else f"{scoring.unscored:,} links are"
        notes.append(f"{links} not scored, the next run asks again: {scoring.trouble}")


async def settle_scores(store: Store, scoring: LinkScoring | None, run: Run) -> None:
    """Recompute the stored scores at the end of a run; without keywords, clear them."""
    if run.mode is RunMode.CHECK:
        return
    if scoring is not None:
        await scoring.settle(run.source_id)
    elif await store.link_scores.seal(run.source_id) is not None:
        await store.link_scores.weigh(run.source_id, KeywordWeights(weights={}), None)


AT_A_TIME = 8  # new pages; if some links have a score, only those


class BestFirst:
    """Admits the best links of a run to the queue, as far as its limits allow."""

    def __init__(self, context: "RunContext", scoring: LinkScoring) -> None:
        self._course = context
        self._scoring = scoring
        self._first = True

    async def admit(self) -> bool:
        """Queue the best waiting links; return False if none can be queued."""
        context, store = self._course, self._course.tools.store
        await self._scoring.ask(context.run, full=not self._scoring.is_free)
        waiting, good = await self._ranked()
        if context.stopping.is_set():
            context.unfilled = context.unfilled or bool(waiting)
            return False
        number = max(1, min(AT_A_TIME, good or AT_A_TIME))
        for start in range(0, len(waiting), number):
            some = waiting[start : start + number]
            listed = {item.url for item in context.held_back}
            queued = await store.queue.enqueue(context.run, some, context.limits, context.tools.clock())
            # Listed URLs are stored in the listing once they become pages.
            taken = {item.url for item in some}
            if found := [item for item in context.held_back if item.url in taken]:
                await store.listings.record(context.source.id, found, complete=False)
                context.held_back = [item for item in context.held_back if item.url not in taken]
            if queued:
                return True
            if any(item.url not in listed for item in some):
                break  # no room is left for a link that is not a page yet
        await store.links.close_frontier(context.source.id, context.fingerprint, context.rules.max_depth)
        return False

    async def _ranked(self) -> tuple[list[ListedUrl], int]:
        """Return candidate links and listed URLs, best first, and how many of them have a score."""
        context, store = self._course, self._course.tools.store
        frontier = await store.queue.frontier(context.source.id)
        waiting = {item.url: item for item in [*context.held_back, *frontier]}
        near = [item for item in waiting.values() if item.depth <= context.rules.max_depth]
        scores = await self._worths()
        if near and not scores and self._first:  # without any score, a partial batch is worth a call
            self._first = False
            await self._scoring.ask(context.run)
            scores = await self._worths()
        good = sum(1 for item in near if item.url in scores)
        return sorted(near, key=lambda item: (-scores.get(item.url, 0.0), item.depth)), good

    async def _worths(self) -> Mapping[str, float]:
        known = await self._course.tools.store.link_scores.of_source(self._course.source.id)
        guessed = await self._scoring.guesses(self._course.run)
        return {**known, **{url: max(score, known.get(url, 0.0)) for url, score in guessed.items()}}


def applies(context: "RunContext") -> bool:
    """Return whether the run discovers its pages by links and may choose their order."""
    tools = context.tools
    asked = tools.best_first and tools.scoring is not None
    return asked and context.starts_at_root and context.run.mode in (RunMode.CRAWL, RunMode.REFRESH)
