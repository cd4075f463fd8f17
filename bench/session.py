"""One benchmark from its options to its results."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fcntl import LOCK_EX, LOCK_NB, flock
from importlib.metadata import version
from pathlib import Path
from statistics import median

from bench import figures, machine, packages, peers, published, rounds, startup, synthetic
from bench.corpus import Corpus, Origin, prepare
from bench.failure import BenchFailure
from bench.options import Options
from bench.results import Results
from bench.servers import Server, serving

BUSY = "other programs kept the machine busy, so the times are not reliable"
MADE_UP = "made-up pages behind a small Python server: the figures compare with nothing but themselves"


@dataclass
class Bench:
    """The sites that are served, and what to do with them."""

    options: Options
    say: Callable[[str], None]
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def sites(self) -> Iterator[tuple[Server, list[Corpus]]]:
        """Prepare the corpora and serve them."""
        work = self.options.work
        work.mkdir(parents=True, exist_ok=True)
        with locked(work):
            origins, nginx = self._origins()
            self.say(f"preparing {', '.join(origin.name for origin in origins)}")
            corpora = [prepare(origin, work) for origin in origins]
            with serving(work, nginx) as server:
                yield server, corpora

    def measure(self) -> Results:
        """Play all rounds and gather what they found."""
        options = self.options
        if options.compile:
            self.say("compiling byte code")
            machine.compile_all()
        about = machine.describe()
        if machine.busy():
            self.notes.append(f"{BUSY} (load {about['load_before']})")
        with self.sites() as (server, corpora):
            self.say("start-up")
            start_up = startup.measure(options.work, options.repeat)
            setting = rounds.Setting(server, options.work, options.repeat, self.say)
            played: dict[str, list[rounds.Round]] = {corpus.name: [] for corpus in corpora}
            for number in range(1, options.rounds + 1):
                for corpus in corpora:
                    played[corpus.name].append(rounds.play(corpus, number, setting))
            of_peers = peers.measure(corpora, setting) if options.peers else []
        return Results(
            command=" ".join(["python -m bench", *sys.argv[1:]]),
            commit=published.commit(),
            version=version("afresh"),
            machine=about,
            server=server.kind,
            rounds=options.rounds,
            corpora=[_facts(corpus) for corpus in corpora],
            start_up=_start_up(start_up, played.values()),
            rows=[row for each in played.values() for row in figures.rows(each, start_up)],
            goals=[goal for each in played.values() for goal in figures.goals(each, start_up)],
            checks=[check for each in played.values() for one in each for check in one.checks],
            rows_of_peers=of_peers,
            notes=self.notes,
        )

    def _origins(self) -> tuple[list[Origin], str | None]:
        options = self.options
        if not options.synthetic and not packages.at_hand() and options.install:
            packages.install(self.say)
        if not options.synthetic and packages.at_hand():
            return [packages.ORIGINS[name] for name in options.corpora], packages.nginx()
        if not options.synthetic:
            needed = " ".join(packages.NEEDED)
            self.notes.append(f"the real documentation is not installed (Debian packages {needed})")
        self.notes.append(MADE_UP)
        fill = synthetic.fill_with(options.pages)
        return [Origin("made-up", fill, "expired lease", options.pages)], None


@contextmanager
def locked(work: Path) -> Iterator[None]:
    """One benchmark at a time in a work folder."""
    with (work / "lock").open("w") as file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise BenchFailure(f"another benchmark runs in {work}; AFRESH_BENCH_WORK names another folder") from None
        yield


def _facts(corpus: Corpus) -> dict[str, object]:
    mix = corpus.mix
    return {
        "name": corpus.name,
        "pages": len(corpus.pages),
        "megabytes": round(corpus.megabytes, 1),
        "modified": len(mix.modified),
        "deleted": len(mix.deleted),
        "added": len(mix.added),
    }


def _start_up(start_up: startup.StartUp, played: Iterable[Sequence[rounds.Round]]) -> dict[str, float]:
    every = [each for of_corpus in played for each in of_corpus]
    return {
        "afresh --version": start_up.version_s,
        "afresh refresh, empty store": start_up.idle_refresh_s,
        "afresh crawl, to its first request": figures.first_request(every),
        "afresh refresh, to its first request": median(each.steps["refresh"].first_request_s or 0.0 for each in every),
    }
