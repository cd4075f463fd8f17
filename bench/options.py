"""The command line of the benchmark."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.synthetic import PAGES

MIN_ROUNDS = 3
PROFILES = ("crawl", "refresh", "mix", "search")


@dataclass(frozen=True)
class Options:
    """What was asked for."""

    corpora: tuple[str, ...]
    rounds: int
    repeat: int
    synthetic: bool
    pages: int
    json: bool
    install: bool
    compile: bool
    peers: bool
    profile: str | None
    work: Path

    @property
    def is_full(self) -> bool:
        """Whether the figures are worth publishing: both real sites, three rounds, peers in the same run."""
        return not self.synthetic and len(self.corpora) > 1 and self.rounds >= MIN_ROUNDS and self.peers


def read(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line."""
    given = _parser().parse_args(arguments)
    corpora = ("pg", "py") if given.corpus == "all" else (given.corpus,)
    default = Path(__file__).resolve().parent / "work"
    return Options(
        corpora=("pg",) if given.quick else corpora,
        rounds=1 if given.quick else max(1, given.rounds),
        repeat=max(1, given.repeat),
        synthetic=given.synthetic,
        pages=max(20, given.pages),
        json=given.json,
        install=not given.no_install,
        compile=not given.no_compile,
        peers=given.peers,
        profile=given.profile,
        work=Path(os.environ.get("AFRESH_BENCH_WORK") or default).resolve(),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures afresh beside a bare fetch loop on real documentation, on this machine alone.",
        epilog="Exit code 1: a result was wrong. AFRESH_BENCH_WORK names another work folder.",
    )
    add = parser.add_argument
    add("--corpus", choices=("pg", "py", "all"), default="all", help="which documentation (default: all)")
    add("--rounds", type=int, default=3, metavar="N", help="rounds of loop and afresh in turn (default: 3)")
    add("--repeat", type=int, default=5, metavar="N", help="runs of each short command (default: 5)")
    add("--quick", action="store_true", help="PostgreSQL's documentation only, one round")
    add("--synthetic", action="store_true", help="made-up pages behind a small server; nothing to install")
    add("--pages", type=int, default=PAGES, metavar="N", help=f"how many made-up pages (default: {PAGES})")
    add("--json", action="store_true", help="one JSON document instead of tables")
    add("--peers", action="store_true", help="also run a hand-written Scrapy crawler (installed apart)")
    add("--profile", choices=PROFILES, help="profile one command instead of measuring")
    add("--no-install", action="store_true", help="never install packages of the system")
    add("--no-compile", action="store_true", help="do not write byte code first")
    return parser
