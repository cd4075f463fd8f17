"""The demo: crawl, change, refresh and search a small local site, with captions."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import RenderableType
from rich.text import Text

from afresh.cli import hits, lists, report
from afresh.cli.progress import run
from afresh.cli.session import Session
from afresh.config import Config, NetworkSettings, StoreSettings
from afresh.dataclass import dataclass, field, replace
from afresh.model.records import RunState
from afresh.model.reports import RunReport, SearchHit
from afresh.present.wording import count
from afresh.testing import TinySite

NAME = "harbor"
SEARCHES = ("how long are pauses between retries", "signed webhooks")
WEBHOOKS = """<!doctype html><html lang="en"><head><title>Webhooks - Harbor 2.4 documentation</title></head>
<body><main><article><h1>Webhooks</h1>
<p>Harbor can call a URL of yours when a job ends. Every call is signed.</p>
<h2 id="signature">Checking the signature</h2>
<p>Signed webhooks carry the header <code>Harbor-Signature</code>: compare it with your own HMAC.</p>
</article></main></body></html>"""


@dataclass(slots=True)
class Demo:
    session: Session
    site: TinySite
    config: Config
    pace: float
    result: dict[str, object] = field(default_factory=dict)

    def caption(self, text: str) -> None:
        if not self.session.json:
            time.sleep(self.pace)
            self.session.show(Text(f"\n{text}", style="bold cyan"))

    def command(self, line: str) -> None:
        self.show(Text.assemble(("$ ", "dim"), line))

    def show(self, view: RenderableType) -> None:
        if not self.session.json:
            self.session.show(view)


def play(session: Session, pace: float = 0.0) -> int:
    with TemporaryDirectory(prefix="afresh-demo-") as folder, TinySite.docs() as site:
        demo = Demo(session, site, settings(Path(folder)), pace)
        code = next((1 for scene in SCENES if not scene(demo)), 0)
    session.wrote_json(demo.result)
    return code


def settings(folder: Path) -> Config:
    return replace(
        Config(),
        store=StoreSettings(url=f"sqlite:///{folder / 'demo.db'}"),
        network=NetworkSettings(allow=("127.0.0.1/32",)),
    )


def first_crawl(demo: Demo) -> bool:
    demo.caption("1  A small documentation site runs on this machine. The first crawl reads all of it.")
    demo.command(f"afresh crawl {demo.site.url} --name {NAME}")
    done = run(
        demo.session, lambda kb, listener: kb.runs.crawl(demo.site.url, name=NAME, listener=listener), demo.config
    )
    return _report(demo, "crawl", done)


def nothing_changed(demo: Demo) -> bool:
    demo.caption("2  Nothing has changed yet: a refresh checks every page and downloads nothing again.")
    return _refresh(demo, "unchanged_refresh")


def something_changed(demo: Demo) -> bool:
    demo.caption("3  Now the site changes. The next refresh processes only these changes.")
    for line in change(demo.site):
        demo.show(Text(f"   {line}"))
    return _refresh(demo, "refresh")


def change(site: TinySite) -> list[str]:
    site.edit("/guide/retries/", "15 seconds", "20 seconds")
    site.edit("/faq/", add_paragraph="Harbor can call you when a job ends: see Webhooks.")
    site.put("/guide/webhooks/", WEBHOOKS)
    site.move("/guide/priorities/", "/guide/queues/")
    site.delete("/tutorials/thumbnails/")
    return [
        "edited   /guide/retries/ and /faq/",
        "added    /guide/webhooks/",
        "moved    /guide/priorities/ to /guide/queues/",
        "deleted  /tutorials/thumbnails/",
    ]


def _refresh(demo: Demo, name: str) -> bool:
    demo.command(f"afresh refresh {NAME}")
    [done] = run(demo.session, lambda kb, listener: kb.runs.refresh([NAME], listener=listener), demo.config)
    return _report(demo, name, done)


def _report(demo: Demo, name: str, done: RunReport) -> bool:
    demo.result[name] = done
    demo.show(report.draw(done, verbose=demo.session.verbose))
    return done.state == RunState.COMPLETED


def what_changed(demo: Demo) -> bool:
    done = demo.result["refresh"]
    number = done.run if isinstance(done, RunReport) else None
    demo.caption("4  What exactly changed?")
    demo.command(f"afresh changes {NAME} --run {number}")
    found = demo.session.ask(lambda kb: kb.pages.changes(NAME, run=number), demo.config)
    demo.result["changes"] = found
    demo.show(lists.changes(found, demo.session.now))
    return bool(found)


def searches(demo: Demo) -> bool:
    demo.caption("5  A search finds the current content.")
    found = {query: _search(demo, query) for query in SEARCHES}
    demo.result["searches"] = found
    return all(found.values())


def _search(demo: Demo, query: str) -> list[SearchHit]:
    demo.command(f'afresh search "{query}" --limit 1')
    found = demo.session.ask(lambda kb: kb.search.search(query, limit=1), demo.config)
    demo.show(hits.draw(found.hits, query, demo.session.now))
    return list(found.hits)


def goodbye(demo: Demo) -> bool:
    asked = len(demo.site.requests)
    demo.result["requests"] = asked
    demo.caption(f"That took {count(asked, 'request')}. The temporary store is deleted now. Try it yourself:")
    demo.command("afresh crawl https://docs.python.org/3/howto/ --name howto")
    demo.command("afresh refresh      # processes only what changed")
    demo.command('afresh search "sorting by key"')
    return True


SCENES = (first_crawl, nothing_changed, something_changed, what_changed, searches, goodbye)
