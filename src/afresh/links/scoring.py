"""What links may be worth before a scorer that is paid was asked about them."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import TypeVar

from afresh.errors import ScoreError, ScorerDown
from afresh.links.score import Answered, AskedLink, Unasked, Weighing, total_score, usual
from afresh.model.records import Run, RunMode, SourceId, Visit
from afresh.ops.failpoints import failpoint
from afresh.ports import Clock, LinkScorer
from afresh.store.store import Store


class LinkGuesses:
    """Scores by a scorer that costs nothing; they say what is read first, and are never kept."""

    def __init__(self, scorer: LinkScorer, weighing: Weighing) -> None:
        self.begun = False  # whether links of earlier runs were noted
        self._scorer = scorer
        self._weighing = weighing
        self._open: dict[AskedLink, None] = {}
        self._worths: dict[str, float] = {}

    def note(self, unasked: Sequence[Unasked]) -> None:
        """Links that wait for an answer."""
        self._open.update(dict.fromkeys(each.link for each in unasked))

    def forget(self, answers: Sequence[Answered]) -> None:
        """The links that were answered: from now on the answer counts, also that nothing fits."""
        for answer in answers:
            self._open.pop(answer.link, None)
            self._worths.pop(answer.link.url, None)

    async def worths(self) -> Mapping[str, float]:
        """The links that may be worth something: address to score."""
        self.begun = True
        links, self._open = list(self._open), {}
        weights, unknown = self._weighing.weights, self._weighing.unknown
        for said in await self._scorer.score(links, tuple(weights)) if links else ():
            score = total_score(said.keywords, weights, unknown)
            self._worths[said.url] = max(score, self._worths.get(said.url, 0.0))
        return self._worths


T = TypeVar("T")
REMEMBERED = 200_000  # links with texts that were met in a run; more are looked up once more


class Stopped(Exception):
    """The run was told to stop while a scorer was asked."""


class LinkScoring:
    """Scores the links of one run; trouble leaves links unasked, and the next run asks for them."""

    def __init__(
        self,
        store: Store,
        scorer: LinkScorer,
        weighing: Weighing,
        clock: Clock,
        stopping: asyncio.Event,
        guesser: LinkScorer | None = None,
    ) -> None:
        self.weighing = weighing
        self._guesses = LinkGuesses(guesser, weighing) if guesser else None
        self.trouble: str | None = None  # why links are left
        self.unscored = 0  # known at the end of a run
        self._store = store
        self._scorer = scorer
        self._clock = clock
        self._stopping = stopping
        self._keywords = tuple(weighing.weights)
        self._met: set[int] = set()
        self._new: list[AskedLink] = []  # met in this run, not yet looked up
        self._ready: dict[tuple[str, ...], dict[AskedLink, None]] = defaultdict(dict)  # by what is asked
        self._left: set[AskedLink] = set()  # asked in vain
        self._down = False
        self._enough = asyncio.Event()
        self._over = False
        self._sealed = False
        self._told = (scorer.calls, scorer.tokens)  # that are counted
        self._asking = asyncio.Lock()

    @property
    def is_free(self) -> bool:
        """Whether asking costs nothing, so that a batch need not be full."""
        return self._scorer.is_free

    def note(self, visits: Sequence[Visit]) -> None:
        """Meet the links of pages that were just written; once nobody may be asked, none are gathered."""
        if self._down and self._guesses is None:
            return
        for visit in visits:
            for link in visit.harvest.links or ():
                pair = AskedLink(link.url, link.text)
                if (met := hash(pair)) not in self._met:
                    self._met.add(met)
                    self._new.append(pair)
        if len(self._met) > REMEMBERED:
            self._met.clear()
        if len(self._new) >= self._scorer.batch:
            self._enough.set()

    @asynccontextmanager
    async def beside(self, run: Run) -> AsyncIterator[None]:
        """While it is open, ask in full batches; at its end the answer under way is waited for."""
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
        """Ask about links met so far, on request only as far as they fill batches."""
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
            if self._down:  # how many are left is counted at the end
                self._ready.clear()
                self._left.clear()
                self._new = self._new if self._guesses else []

    async def guesses(self, run: Run) -> Mapping[str, float]:
        """What links may be worth that nobody was asked about yet; no call is made for it."""
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
        """See whether all links on record are scored: then only those that the run meets are of interest."""
        self._sealed = await self._is_sealed(run.source_id)

    async def finish(self, run: Run) -> None:
        """Ask about every link that is left, also by earlier runs."""
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
        """Bring scores in line with what is on record, once the run has let go of what is gone."""
        if not await self._is_sealed(source):
            seal = "" if self.unscored else self.weighing.seal(self._scorer.recipe)
            await self._store.link_scores.weigh(source, self.weighing, seal)

    async def saved(self, run: Run) -> tuple[int, int]:
        """Links that nobody had to be asked about again, and the calls that would have taken."""
        scored = run.counts.get("links_scored", 0)
        links = max(0, await self._store.link_scores.count_asked(run.source_id) - scored)
        return links, 0 if self.is_free else -(-links // self._scorer.batch)

    async def _is_sealed(self, source: SourceId) -> bool:
        return await self._store.link_scores.seal(source) == self.weighing.seal(self._scorer.recipe)

    @property
    def _may_ask(self) -> bool:
        return not self._down and not self._stopping.is_set()

    async def _unasked(self, source: SourceId, among: Sequence[AskedLink] | None) -> Sequence[Unasked]:
        return await self._store.link_scores.unasked(source, self._scorer.recipe, self._keywords, among)

    def _sort(self, unasked: Sequence[Unasked]) -> None:
        if self._guesses is not None:
            self._guesses.note(unasked)
        for each in unasked:
            if each.link not in self._left and not self._down:
                self._ready[each.keywords][each.link] = None

    async def _ask(self, run: Run, links: Sequence[AskedLink], keywords: tuple[str, ...]) -> None:
        """One call and one transaction; links that got no answer stay unasked."""
        is_whole = True  # what it does not name fits no keyword
        try:
            verdicts = await self._unless_stopped(self._scorer.score(links, keywords))
        except Stopped:
            self._left.update(links)
            return
        except ScoreError as error:
            self.trouble = str(error)
            self._down = isinstance(error, ScorerDown)
            verdicts, is_whole = error.found, False
        said = {AskedLink(each.url, each.text): each for each in verdicts}
        self._left.update(link for link in links if not is_whole and link not in said)
        answers = [
            Answered(
                link=link,
                recipe=self._scorer.recipe,
                asked=frozenset(keywords),
                scores=_usual(said[link].keywords) if link in said else {},
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

    async def _keep(self, run: Run, answers: Sequence[Answered]) -> None:
        calls, tokens = self._scorer.calls, self._scorer.tokens
        spent = {"ai_calls": calls - self._told[0], "ai_tokens": tokens - self._told[1]}
        counts = {"links_scored": len(answers), **spent, "link_calls": spent["ai_calls"]}
        if any(counts.values()):
            await self._store.link_scores.keep(run, answers, self.weighing, counts, self._clock())
        self._told = (calls, tokens)

    async def _unless_stopped(self, call: Awaitable[T]) -> T:
        """What a call gives; a run that is told to stop does not wait for it."""
        task, stop = asyncio.ensure_future(call), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Stopped
            return await task
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})


async def count_scores(
    scoring: LinkScoring | None, run: Run, counts: dict[str, int], notes: list[str]
) -> None:
    """Add what scoring links left to do and what it saved."""
    if scoring is None or run.mode is RunMode.CHECK:
        return
    counts["links_unscored"] = scoring.unscored
    counts["links_saved"], counts["link_calls_saved"] = await scoring.saved(run)
    if scoring.unscored:
        links = "1 link is" if scoring.unscored == 1 else f"{scoring.unscored:,} links are"
        notes.append(f"{links} not scored, the next run asks again: {scoring.trouble}")


async def settle_scores(store: Store, scoring: LinkScoring | None, run: Run) -> None:
    """Bring scores in line with what is on record; without keywords there are none."""
    if run.mode is RunMode.CHECK:
        return
    if scoring is not None:
        await scoring.settle(run.source_id)
    elif await store.link_scores.seal(run.source_id) is not None:
        await store.link_scores.weigh(run.source_id, Weighing(weights={}), None)


def _usual(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores from 0 to 1 by keywords in their usual spelling; of two spellings the higher score counts."""
    found: dict[str, float] = {}
    for keyword, score in scores.items():
        word = usual(keyword)
        found[word] = max(found.get(word, 0.0), min(1.0, max(0.0, score)))
    return found
