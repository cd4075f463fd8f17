"""A file of links as a source: what it lists, what is gone, and what moved."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from afresh.crawl.decide import decide
from afresh.errors import SourceError
from afresh.model.fetch import Body, Failed, Fetched, Gone, Moved, NotModified, Outcome, Refused, Request, Validators
from afresh.model.records import ListedUrl, Page, PageId, PageStatus, Policy, SourceId
from afresh.sources.linklist.lister import MAX_LIST_BYTES, LinkLister, LinkListFetcher, read_stable_file
from afresh.sources.linklist.parse import MAX_NOTES

A, B, C = "https://a.test/", "https://b.test/x", "https://c.test/y"
LONG_AGO = 1_600_000_000


class ScriptedGate:
    """Sites that answer by script; what is asked is written down."""

    def __init__(self, answers: dict[str, Fetched]) -> None:
        self.answers = answers
        self.asked: list[Request] = []
        self.closed = False

    async def fetch(self, request: Request) -> Fetched:
        self.asked.append(request)
        seen = self.answers[request.url]
        validators = request.validators
        if isinstance(seen, Body) and validators and validators.etag == seen.validators.etag:
            issuer = validators.url or request.url
            return NotModified() if issuer == request.url else seen
        return seen

    async def refusal(self, url: str) -> Refused | Failed | None:
        return None

    async def crawl_delay(self, url: str) -> float | None:
        return 2.0

    def state(self, origin: str) -> str:
        return "ok"

    async def close(self) -> None:
        self.closed = True

    @property
    def urls(self) -> list[str]:
        return [request.url for request in self.asked]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "links.txt"


def write(file: Path, *lines: str, content: str | None = None) -> None:
    """A file that was written a while ago."""
    file.write_text("".join(f"{line}\n" for line in lines) if content is None else content)
    os.utime(file, (LONG_AGO, LONG_AGO))


def body(url: str, text: str = "text", etag: str | None = '"1"') -> Body:
    return Body(url=url, data=text.encode(), validators=Validators(etag=etag))


async def listed(lister: LinkLister) -> list[ListedUrl]:
    return [item async for item in lister.list()]


# ---- the listing


async def test_E15_every_address_is_a_page_at_depth_0_and_asked_by_itself(file: Path) -> None:
    write(file, "# mine", A, B, A, "nonsense")
    lister = LinkLister(file)
    assert await listed(lister) == [ListedUrl(A, 0), ListedUrl(B, 0)]
    assert lister.notes == [
        "links.txt line 5: 'nonsense' is not an http or https URL",
        "links.txt line 4: this URL is listed before, and read once",
    ]
    assert (lister.listing_errors, lister.mark, lister.unchanged) == ((), None, False)
    assert not any(map(lister.walks, (A, C))), "links are not followed, wherever they lead"
    assert (lister.refusal(A, 0), lister.refusal(C, 0)) == (None, None)


@pytest.mark.parametrize("content", ["", "\n", "# all out\n", "\ufeff", "what is this\n"])
async def test_F86_a_file_that_listed_something_and_lists_nothing_is_an_error(file: Path, content: str) -> None:
    write(file, content=content)
    with pytest.raises(SourceError, match=r"lists no URL.* although it did before: all pages"):
        await listed(LinkLister(file, expects_links=True))
    with pytest.raises(SourceError, match=r"lists no URL.*: write one http or https URL on"):
        await listed(LinkLister(file))


async def test_F86_a_file_that_vanished_is_an_error(file: Path) -> None:
    with pytest.raises(SourceError, match=r"links\.txt does not exist: all stored pages are kept"):
        await listed(LinkLister(file, expects_links=True))


async def test_F86_what_is_no_ordinary_file_is_an_error_and_nothing_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    for path in (tmp_path / "pipe.txt", tmp_path, Path("/dev/zero")):
        with pytest.raises(SourceError, match=r"cannot be read"):
            await listed(LinkLister(path))


async def test_F86_a_file_without_end_is_not_read_to_its_end(file: Path) -> None:
    write(file)
    os.truncate(file, MAX_LIST_BYTES + 1)
    with pytest.raises(SourceError, match="is larger than 16 MB"):
        await listed(LinkLister(file))


async def test_F86_a_file_that_the_system_refuses_to_open_is_an_error(file: Path) -> None:
    """Also as root, who may read whatever there is."""
    write(file, A)
    with pytest.raises(SourceError, match=r"cannot be read \(Not a directory\): all stored pages are kept"):
        await listed(LinkLister(file / "below", expects_links=True))


# ---- a file that is being written


class Writer:
    """Goes on writing whenever the reader waits."""

    def __init__(self, *steps: Callable[[], None]) -> None:
        self.steps = list(steps)
        self.now = 1_700_000_000.0
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        if self.steps:
            self.steps.pop(0)()

    def wall(self) -> float:
        return self.now

    def save(self, file: Path, text: str) -> None:
        """Written this moment."""
        file.write_text(text)
        os.utime(file, (self.now, self.now))


async def test_F86_a_half_saved_file_is_read_when_it_is_whole(file: Path) -> None:
    whole = f"{A}\n{B}\n{C}\n"
    writer = Writer(lambda: writer.save(file, f"{A}\n{B}\nhttps://c"), lambda: writer.save(file, whole), lambda: None)
    writer.save(file, f"{A}\nhttps://b.te")
    stable = await read_stable_file(file, wall=writer.wall, sleep=writer.sleep)
    assert stable.data.decode() == whole
    assert len(writer.waits) == 3


async def test_F86_a_file_that_was_emptied_to_be_rewritten_is_waited_for(file: Path) -> None:
    writer = Writer(lambda: writer.save(file, f"{A}\n"))
    writer.save(file, "")
    stable = await read_stable_file(file, wall=writer.wall, sleep=writer.sleep)
    assert stable.data.decode() == f"{A}\n"


async def test_F86_a_file_that_was_left_alone_is_read_at_once(file: Path) -> None:
    write(file, A)
    writer = Writer()
    assert (await read_stable_file(file, wall=writer.wall, sleep=writer.sleep)).data.decode() == f"{A}\n"
    assert writer.waits == []


async def test_F86_a_file_dated_in_the_future_is_read_all_the_same(file: Path) -> None:
    write(file, A)
    os.utime(file, (2_000_000_000, 2_000_000_000))
    writer = Writer()
    assert (await read_stable_file(file, wall=writer.wall, sleep=writer.sleep)).data.decode() == f"{A}\n"


async def test_F86_a_file_that_is_never_left_alone_is_an_error_in_the_end(file: Path) -> None:
    writer = Writer()
    writer.steps = [lambda: writer.save(file, f"{A}{len(writer.waits)}\n")] * 1000
    writer.save(file, "")
    with pytest.raises(SourceError, match="changed during every attempt"):
        await read_stable_file(file, wall=writer.wall, sleep=writer.sleep)


async def test_F86_a_file_replaced_between_two_reads_is_read_again(file: Path, tmp_path: Path) -> None:
    """Another file under the same name, of the same size and time."""
    write(file, A)
    write(tmp_path / "other", "https://z.test/")
    first = await read_stable_file(file)
    (tmp_path / "other").replace(file)
    second = await read_stable_file(file)
    assert (first.data, second.data) == (f"{A}\n".encode(), b"https://z.test/\n")
    assert first.state != second.state


# ---- looking


async def test_E16_what_is_no_longer_listed_is_gone_and_nobody_is_asked(file: Path) -> None:
    write(file, A)
    gate = ScriptedGate({A: body(A)})
    web = LinkListFetcher(gate, LinkLister(file))
    seen = await web.fetch(Request(url=B))
    assert seen == Gone(status_code=None, reason="no longer listed in links.txt")
    assert gate.urls == []
    assert await web.crawl_delay(B) is None
    page = Page(id=PageId(1), source_id=SourceId(1), url=B, status=PageStatus.ACTIVE, content_hash="a" * 64)
    decision = decide(page, seen, Policy(), datetime(2026, 1, 1, tzinfo=UTC))
    assert (decision.outcome, decision.reason) == (Outcome.GONE, "no longer listed in links.txt")


async def test_what_is_listed_is_asked_as_it_is(file: Path) -> None:
    write(file, A, B)
    gate = ScriptedGate({A: body(A), B: Failed(outcome=Outcome.TIMEOUT, reason="no answer")})
    web = LinkListFetcher(gate, LinkLister(file))
    asked = Request(url=A, validators=Validators(etag='"1"'))
    assert await web.fetch(asked) == NotModified()
    assert await web.fetch(Request(url=B)) == gate.answers[B]
    assert gate.asked[0] == asked
    assert (await web.refusal(A), await web.crawl_delay(A), web.state("https://a.test")) == (None, 2.0, "ok")
    await web.close()
    assert gate.closed


async def test_F86_one_run_sees_one_state_of_the_file(file: Path) -> None:
    write(file, A, B)
    gate = ScriptedGate({A: body(A), B: body(B)})
    lister = LinkLister(file)
    await listed(lister)
    write(file, A)
    assert isinstance(await LinkListFetcher(gate, lister).fetch(Request(url=B)), Body)


async def test_F86_a_look_without_a_readable_file_fails_and_deletes_nothing(file: Path) -> None:
    gate = ScriptedGate({})
    web = LinkListFetcher(gate, LinkLister(file, expects_links=True))
    seen = await web.fetch(Request(url=A))
    assert await web.crawl_delay(A) is None
    assert isinstance(seen, Failed)
    assert "does not exist" in seen.reason
    assert gate.urls == []


# ---- addresses that moved


async def test_A17_G12_a_listed_address_that_moved_is_read_where_it_is_now_and_stays_the_page(file: Path) -> None:
    write(file, A)
    gate = ScriptedGate({A: Moved(to=B), B: body(B, "moved text")})
    lister = LinkLister(file)
    web = LinkListFetcher(gate, lister)
    seen = await web.fetch(Request(url=A))
    assert isinstance(seen, Body)
    assert (seen.data, seen.validators) == (b"moved text", Validators(etag='"1"', url=B))
    assert lister.notes == [f"moved permanently and read at the new URL: {A} → {B}"]

    gate.asked.clear()
    assert isinstance(await web.fetch(Request(url=A, validators=seen.validators)), NotModified)
    assert gate.urls == [A, B]


async def test_A3_validators_of_a_page_go_to_no_address_it_moved_to(file: Path) -> None:
    write(file, A)
    gate = ScriptedGate({A: Moved(to=B), B: body(B)})
    seen = await LinkListFetcher(gate, LinkLister(file)).fetch(Request(url=A, validators=Validators(etag='"1"')))
    assert isinstance(seen, Body), "the same ETag, but of another address"
    assert [request.validators for request in gate.asked][1] == Validators(etag='"1"', url=A)


async def test_moves_in_a_row_are_followed_and_circles_are_not(file: Path) -> None:
    write(file, A)
    gate = ScriptedGate({A: Moved(to=B), B: Moved(to=C), C: body(C)})
    web = LinkListFetcher(gate, LinkLister(file))
    seen = await web.fetch(Request(url=A))
    assert isinstance(seen, Body)
    assert seen.validators.url == C
    gate.answers[C] = Moved(to=A)
    circle = await web.fetch(Request(url=A))
    assert isinstance(circle, Refused)
    assert circle.reason == f"redirect loop: {A} → {B} → {C} → {A}"


async def test_moves_without_end_are_given_up(file: Path) -> None:
    write(file, f"{A}0")
    gate = ScriptedGate({f"{A}{n}": Moved(to=f"{A}{n + 1}") for n in range(30)})
    seen = await LinkListFetcher(gate, LinkLister(file)).fetch(Request(url=f"{A}0"))
    assert isinstance(seen, Refused)
    assert seen.reason.startswith("more than 5 redirects: ")
    assert len(gate.asked) == 6


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Gone(), Gone(reason=f"moved to {B}, which is gone (404)")),
        (
            Failed(outcome=Outcome.TIMEOUT, reason="no answer", retry_after=3.0),
            Failed(outcome=Outcome.TIMEOUT, reason=f"moved to {B}: no answer", retry_after=3.0),
        ),
        (
            Refused(outcome=Outcome.BLOCKED_ROBOTS, reason="robots.txt line 2"),
            Refused(outcome=Outcome.BLOCKED_ROBOTS, reason=f"moved to {B}: robots.txt line 2"),
        ),
    ],
)
async def test_an_error_at_the_new_url_names_that_url(file: Path, answer: Fetched, expected: Fetched) -> None:
    write(file, A)
    gate = ScriptedGate({A: Moved(to=B), B: answer})
    assert await LinkListFetcher(gate, LinkLister(file)).fetch(Request(url=A)) == expected


async def test_a_move_that_asks_to_wait_is_followed_later(file: Path) -> None:
    write(file, A)
    gate = ScriptedGate({A: replace(Moved(to=B), retry_after=30.0)})
    seen = await LinkListFetcher(gate, LinkLister(file)).fetch(Request(url=A))
    assert isinstance(seen, Failed)
    assert seen.retry_after == 30.0
    assert gate.urls == [A]


async def test_S2_F167_the_notes_of_a_list_are_bounded_in_number_and_length(tmp_path: Path) -> None:
    listed = [f"https://a.test/{n}/{'p' * 900}" for n in range(200)]
    unseen = "\U000e0001" * 100
    bad = [f"{unseen}{n}" for n in range(5_000)] + [f"ftp://{'x' * 5_000}"] * 50
    file = tmp_path / "links.txt"
    file.write_text("\n".join([*bad, *listed, *listed, f"https://u:{'s' * 9_000}@a.test/", "\x00" * 9_000]))
    os.utime(file, (LONG_AGO, LONG_AGO))
    lister = LinkLister(file)
    assert len([each async for each in lister.list()]) == 200
    moves = {url: Moved(to=f"{url}/{'q' * 900}") for url in listed}
    gate = ScriptedGate({**moves})
    web = LinkListFetcher(gate, lister)
    gate.answers |= {each.to: body(each.to) for each in moves.values()}
    for url in listed[:100]:
        await web.fetch(Request(url=url))
    notes = lister.notes
    assert len(notes) <= MAX_NOTES + 3
    assert max(map(len, notes)) <= 1_000
    assert "moved permanently" in notes[-1]
    assert "4,052 more lines are not URLs" in notes[MAX_NOTES]
