"""Which new pages are read next where the best links come first: few at a time, as each may show better."""

from collections.abc import Mapping, Sequence

from afresh.crawl.context import Course
from afresh.links.scoring import LinkScoring
from afresh.model.records import Listed, RunMode

AT_A_TIME = 8  # new pages; where some have a score, none without one


class BestFirst:
    """Admits the links of a run that are worth most, as far as its limits have room."""

    def __init__(self, course: Course, scoring: LinkScoring) -> None:
        self._course = course
        self._scoring = scoring
        self._first = True

    async def admit(self) -> bool:
        """Queue the best of what waits to become a page; False if nothing may."""
        course, store = self._course, self._course.kit.store
        await self._scoring.ask(course.run, full=not self._scoring.is_free)
        waiting, good = await self._ranked()
        if course.stopping.is_set():
            course.unfilled = course.unfilled or bool(waiting)
            return False
        number = max(1, min(AT_A_TIME, good or AT_A_TIME))
        for start in range(0, len(waiting), number):
            some = waiting[start : start + number]
            listed = {item.url for item in course.held_back}
            queued = await store.queue.enqueue(course.run, some, course.limits, course.kit.clock())
            await self._take(some)
            if queued:
                return True
            if any(item.url not in listed for item in some):
                break  # a link that is no page yet finds no room
        await store.links.close_frontier(course.source.id, course.fingerprint, course.rules.max_depth)
        return False

    async def _take(self, some: Sequence[Listed]) -> None:
        """Remember what the source lists by itself, now that it is a page."""
        course, taken = self._course, {item.url for item in some}
        listed = [item for item in course.held_back if item.url in taken]
        if listed:
            await course.kit.store.listings.record(course.source.id, listed, complete=False)
            course.held_back = [item for item in course.held_back if item.url not in taken]

    async def _ranked(self) -> tuple[list[Listed], int]:
        """Links that belong and are no pages yet, and what is listed, best first; how many have a score."""
        course, store = self._course, self._course.kit.store
        frontier = await store.queue.frontier(course.source.id)
        waiting = {item.url: item for item in [*course.held_back, *frontier]}
        near = [item for item in waiting.values() if item.depth <= course.rules.max_depth]
        scores = await self._worths()
        if near and not scores and self._first:  # nothing is known to lead on: a call is worth it
            self._first = False
            await self._scoring.ask(course.run)
            scores = await self._worths()
        good = sum(1 for item in near if item.url in scores)
        return sorted(near, key=lambda item: (-scores.get(item.url, 0.0), item.depth)), good

    async def _worths(self) -> Mapping[str, float]:
        """What links are worth, and may be where no answer has come yet: then the higher one counts."""
        known = await self._course.kit.store.link_scores.of_source(self._course.source.id)
        guessed = await self._scoring.guesses(self._course.run)
        return {**known, **{url: max(score, known.get(url, 0.0)) for url, score in guessed.items()}}


def applies(course: Course) -> bool:
    """Whether the run finds its pages by links and is free to choose their order."""
    kit = course.kit
    asked = kit.best_first and kit.scoring is not None
    return asked and course.starts_at_root and course.run.mode in (RunMode.CRAWL, RunMode.REFRESH)
