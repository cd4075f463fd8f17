"""Processes that start in a moment: forked from one that has imported everything and has no threads."""

import multiprocessing

PRELOADED = (
    "tests.preloaded",
    "tests.e2e.forked",
    "tests.e2e.library",
    "tests.contract.test_concurrency",
    "tests.contract.test_killed",
    "afresh.chunkers.markdown",
    "afresh.extractors.html",
    "afresh.faces.cli.hits",
    "afresh.faces.cli.run_commands",
    "afresh.faces.cli.running",
    "afresh.fetchers.http",
    "afresh.fetchers.rendering",
    "afresh.fetchers.robots",
    "afresh.sources.hinted",
    "afresh.sources.web",
    "yaml",
)


def forking() -> "multiprocessing.context.ForkServerContext":
    """What starts such processes; all tests of a process share one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED])
    return context
