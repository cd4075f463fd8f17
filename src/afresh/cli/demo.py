"""The demo: crawl, change, refresh and search a small local site, with captions."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import RenderableType
from rich.text import Text

from afresh.cli import hits, lists, report
from afresh.cli.progress import run
from afresh.cli.session import Session
from afresh.config import Config, NetworkSettings, StoreSettings
from afresh.model.records import RunState
from afresh.model.reports import RunReport, SearchHit
from afresh.present.wording import count
from afresh.testing import TinySite

NAME = "harbor"
SEARCHES = ("how long are pauses between retries", "signed webhooks")
WEBHOOKS = """<!doctype html><html lang="en"><head><title>Webhooks - Harbor 2.4 documentation</title></head>
<body><main><article><h1>Webhooks</h1>
<p>Harbor can call an address of yours when a job ends. Every call is signed.</p>
<h2 id="signature">Checking the signature</h2>
<p>Signed webhooks carry the header <code>Harbor-Signature</code>: compare it with your own HMAC.</p>
</article></main></body></html>"""


@dataclass
class Stage:
    """The state of the demo: a site, a temporary store, and the result of each scene."""

    session: Session
    site: TinySite
    config: Config
    pace: float
    result: dict[str, object] = field(default_factory=dict)

    def caption(self, text: str) -> None:
        if not self.session.json:
            time.sleep(self.pace)
            self.session.show(Text(f"\n{text}", style="bold cyan"))

    def typed(self, command: str) -> None:
        self.show(Text.assemble(("$ ", "dim"), command))

    def show(self, picture: RenderableType) -> None:
        if not self.session.json:
            self.session.show(picture)


def play(session: Session, pace: float = 0.0) -> int:
    with TemporaryDirectory(prefix="afresh-demo-") as folder, TinySite.docs() as site:
        stage = Stage(session, site, settings(Path(folder)), pace)
        code = next((1 for scene in SCENES if not scene(stage)), 0)
    session.wrote_json(stage.result)
    return code


def settings(folder: Path) -> Config:
    return replace(
        Config(),
        store=StoreSettings(url=f"sqlite:///{folder / 'demo.db'}"),
        network=NetworkSettings(allow=("127.0.0.1/32",)),
    )


def first_crawl(stage: Stage) -> bool:
    stage.caption("1  A documentation site stands on this machine. The first crawl reads all of it.")
    stage.typed(f"afresh crawl {stage.site.url} --name {NAME}")
    done = run(
        stage.session,
        lambda kb, listener: kb.runs.crawl(stage.site.url, name=NAME, listener=listener),
        stage.config,
    )
    return _reported(stage, "crawl", done)


def nothing_changed(stage: Stage) -> bool:
    stage.caption("2  A moment later: every page is asked whether it changed, none has to be read again.")
    return _refresh(stage, "unchanged_refresh")


def something_changed(stage: Stage) -> bool:
    stage.caption("3  Meanwhile the authors were at work.")
    for line in change(stage.site):
        stage.show(Text(f"   {line}"))
    return _refresh(stage, "refresh")


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


def _refresh(stage: Stage, name: str) -> bool:
    stage.typed(f"afresh refresh {NAME}")
    [done] = run(stage.session, lambda kb, listener: kb.runs.refresh([NAME], listener=listener), stage.config)
    return _reported(stage, name, done)


def _reported(stage: Stage, name: str, done: RunReport) -> bool:
    stage.result[name] = done
    stage.show(report.draw(done, verbose=stage.session.verbose))
    return done.state == RunState.COMPLETED


def what_changed(stage: Stage) -> bool:
    done = stage.result["refresh"]
    number = done.run if isinstance(done, RunReport) else None
    stage.caption("4  What exactly changed?")
    stage.typed(f"afresh changes {NAME} --run {number}")
    found = stage.session.ask(lambda kb: kb.pages.changes(NAME, run=number), stage.config)
    stage.result["changes"] = found
    stage.show(lists.changes(found, stage.session.now))
    return bool(found)


def searches(stage: Stage) -> bool:
    stage.caption("5  The index answers with what is there now.")
    found = {query: _search(stage, query) for query in SEARCHES}
    stage.result["searches"] = found
    return all(found.values())


def _search(stage: Stage, query: str) -> list[SearchHit]:
    stage.typed(f'afresh search "{query}" --limit 1')
    found = stage.session.ask(lambda kb: kb.search.search(query, limit=1), stage.config)
    stage.show(hits.draw(found.hits, query, stage.session.now))
    return list(found.hits)


def goodbye(stage: Stage) -> bool:
    asked = len(stage.site.requests)
    stage.result["requests"] = asked
    stage.caption(f"That took {count(asked, 'request')}, and its store is thrown away now. Yours next:")
    stage.typed("afresh crawl https://docs.python.org/3/howto/ --name howto")
    stage.typed("afresh refresh      # whenever you like: only changes cost")
    stage.typed('afresh search "sorting by key"')
    return True


SCENES = (first_crawl, nothing_changed, something_changed, what_changed, searches, goodbye)
