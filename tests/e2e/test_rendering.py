"""Pages that need a browser, from outside: crawled with the Chromium of this machine."""

import signal
from pathlib import Path

import psutil
import pytest
from tests.e2e.library import counts, found, opened
from tests.e2e.program import Program, ended
from tests.fakes.browser_traps import RESTLESS
from tests.fakes.script_site import ScriptSite, WalledSite
from tests.fakes.servers import html, serving

from afresh.kb import KnowledgeBase
from afresh.sources.web.browser.launch import NoBrowser
from afresh.testing import TinySite

AUTO = {"crawl.probe": False, "embedding.provider": "none"}


async def _evidence(kb: KnowledgeBase, url: str) -> str:
    """What the last finished look at a page says of itself."""
    return next(attempt.reason or "" for attempt in await kb.pages.history(url) if attempt.outcome is not None)


@pytest.mark.usefixtures("work")
async def test_C21_a_site_made_by_script_is_crawled_no_change_behind_its_shell_missed_and_nothing_lost(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptSite.guide(2) as site:
        async with opened(store, AUTO) as kb:
            first = await kb.runs.crawl(site.url, name="docs")
            site.say("/guide/1", "Part 1", "Part 1 now tells of lighthouses, and where they stand.", "/")
            second = (await kb.runs.refresh(["docs"]))[0]
            assert await found(kb, "lighthouses") == {site.at("/guide/1")}
            assert site.at("/guide/1") not in await found(kb, "harbors")
            why = await _evidence(kb, site.at("/guide/1"))
            monkeypatch.setattr("afresh.sources.web.browser.browser.launch", _no_browser)
            without = (await kb.runs.refresh(["docs"]))[0]
            assert await found(kb, "lighthouses") == {site.at("/guide/1")}, "no shell takes its place"
    assert counts(first) == {"new": 2}
    assert first.rendered == 2
    assert [note for note in first.notes if "2 pages were rendered in chromium" in note]
    assert counts(second) == {"changed": 1, "unchanged": 1}
    assert "rendered in chromium: it asks for JavaScript" in why
    assert without.state == "failed"
    assert "playwright install" in (without.error or "")


@pytest.mark.usefixtures("work")
async def test_C21_a_site_that_turns_plain_clients_away_is_crawled(store: Path) -> None:
    with WalledSite() as site:
        site.put(
            "/",
            "<title>Town</title><h1>Hall</h1><p>The council meets on Mondays, and all may come.</p>"
            "<a href='/fees'>Fees</a>",
        )
        site.put("/fees", "<title>Fees</title><h1>Fees</h1><p>A fishing licence is free for residents.</p>")
        async with opened(store, AUTO) as kb:
            report = await kb.runs.crawl(site.url, name="docs")
            assert await found(kb, "fishing") == {site.at("/fees")}
            why = await _evidence(kb, site.at("/fees"))
    assert counts(report) == {"new": 2}
    assert "the site refuses clients that are not browsers" in why


@pytest.mark.usefixtures("work")
async def test_C21_plain_pages_start_no_browser_and_cost_no_request_more(store: Path, site: TinySite) -> None:
    site.put("/script.html", f"<title>S</title><p>{'Much text. ' * 60}</p><script>{'f();' * 9000}</script>")
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    async with opened(store, AUTO) as kb:
        report = await kb.runs.crawl(site.url, name="docs")
        asked = len(site.requests)
        again = (await kb.runs.refresh(["docs"]))[0]
    assert report.new > 10
    assert report.rendered == again.rendered == 0
    assert again.not_modified == report.new
    assert len(site.requests) - asked <= report.new + 5
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before


def _browser_processes(pid: int) -> list[psutil.Process]:
    return [each for each in psutil.Process(pid).children(recursive=True) if "chrom" in " ".join(each.cmdline())]


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_no_browser_survives_the_end_of_afresh(
    store: Path, by: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFRESH_EMBEDDING__PROVIDER", "none")
    with ScriptSite.guide() as site:
        site.put("/", RESTLESS)
        gate = site.hold("/never?3")
        program = Program(store, in_process=True)
        process = program.start("crawl", site.url, "--name", "docs")
        gate.wait(timeout=30)
        family = psutil.Process(process.pid).children(recursive=True)
        assert _browser_processes(process.pid)
        process.send_signal(by)
        site.release("/never?3")
        ended(process)
        _, alive = psutil.wait_procs(family, timeout=10)
    assert [each.name() for each in alive] == []


@pytest.mark.usefixtures("work")
async def test_C21_a_browser_that_comes_later_shows_what_was_read_without_it(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptSite.guide(1) as site:
        with monkeypatch.context() as patched:
            patched.setattr("afresh.sources.web.browser.browser.launch", _no_browser)
            async with opened(store, AUTO) as kb:
                first = await kb.runs.crawl(site.url, name="docs")
        async with opened(store, AUTO) as kb:
            second = (await kb.runs.refresh(["docs"]))[0]
            assert await found(kb, "guide") == {site.url}
    assert (first.rendered, second.rendered) == (0, 1)


@pytest.mark.usefixtures("work")
async def test_C21_F42_an_outage_behind_a_shell_empties_nothing_however_many_runs_see_it(store: Path) -> None:
    with ScriptSite.guide(1) as site:
        async with opened(store, {**AUTO, "browser.settle_seconds": 1}) as kb:
            await kb.runs.crawl(site.url, name="docs")
            waits = "document.getElementById('root').innerHTML = '<p>Loading …</p>'"
            site.put("/app.js", waits, media_type="text/javascript", listed=False)
            reports = [(await kb.runs.refresh(["docs"]))[0] for _ in range(3)]
            assert await found(kb, "guide") == {site.url}
            assert "the page shows no content" in await _evidence(kb, site.url)
    assert [report.state for report in reports] == ["failed"] * 3


@pytest.mark.usefixtures("work")
async def test_C21_another_way_to_render_counts_for_pages_on_record(store: Path) -> None:
    with TinySite() as site:
        text = "The council meets on Mondays in the large hall of the town, and everybody may come to listen. "
        site.put("/", f"<title>Town</title><main><p>{text * 6}</p></main>")
        async with opened(store, AUTO) as kb:
            await kb.runs.crawl(site.url, name="docs")
            displayed = await kb.runs.crawl(site.url, name="docs", policy={"render": "always"})
            again = await kb.runs.crawl(site.url, name="docs")
    assert (displayed.rendered, displayed.not_modified) == (1, 0)
    assert (again.rendered, again.not_modified) == (0, 1), "its validators hold, as scripts changed nothing"


async def _no_browser(*given: object) -> None:
    raise NoBrowser("chromium is not installed: playwright install chromium")


@pytest.mark.usefixtures("work")
async def test_S4_F116_a_page_displayed_in_a_browser_reaches_no_allowed_place_where_its_source_does_not_start(
    store: Path, site: TinySite
) -> None:
    """Neither by a frame nor by a script, although the other place lets every site read it."""
    inside = html("<main>the inner secret</main>", access_control_allow_origin="*")
    async with serving({"/": inside}, host="127.0.0.2") as other:
        script = f"fetch('{other.url()}').then(a => a.text()).then(t => document.body.append(t))"
        site.put("/", f"<p>Open words.</p><iframe src='{other.url()}'></iframe><script>{script}</script>")
        allow = {"network.allow": ["127.0.0.1/32", "127.0.0.2/32"], "crawl.render": "always", **AUTO}
        async with opened(store, allow) as kb:
            report = await kb.runs.crawl(site.url, name="docs", rules={"max_pages": 1})
            assert report.rendered == 1
            assert await found(kb, "words") == {site.url}
            assert not await found(kb, "secret")
        assert other.connections == 0
