"""Where the time of one command goes."""

import io
import pstats
from pathlib import Path

from bench.corpus import Corpus
from bench.servers import Server
from bench.subject import Afresh

TOP = 40


def profile(command: str, corpus: Corpus, server: Server, work: Path) -> str:
    """Bring a store into the state before a command, run it under cProfile, and tell the most expensive."""
    store, out = work / "stores" / f"{corpus.name}-profile.db", work / f"{command}.prof"
    plain, profiled = Afresh(work, store), Afresh(work, store, profile=out)
    plain.forget()
    corpus.reset()
    start = corpus.start(server.base)
    if command != "crawl":
        plain.crawl(start, corpus.name)
    if command == "mix":
        corpus.update()
    match command:
        case "crawl":
            answer = profiled.crawl(start, corpus.name)
        case "search":
            answer = profiled.search(corpus.query)
        case _:
            answer = profiled.refresh()
    text = io.StringIO()
    pstats.Stats(str(out), stream=text).strip_dirs().sort_stats("tottime").print_stats(TOP)
    cost = answer.cost
    return (
        f"afresh {command} on {corpus.name}, {len(corpus.pages)} pages: {cost.wall_s:.2f} s under cProfile, "
        f"{cost.cpu_s:.2f} s CPU with all processes\nwhole profile: {out}\n{text.getvalue()}"
    )
