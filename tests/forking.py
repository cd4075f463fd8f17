"""Processes that start in a moment: forked from one that has imported everything and has no threads."""

import multiprocessing

PRELOADED = (
    "tests.preloaded",
    "tests.e2e.forked",
    "tests.e2e.library",
    "tests.store.test_concurrency",
    "tests.store.test_killed",
    "afresh.extract.chunk.markdown",
    "afresh.extract.html.html",
    "afresh.cli.hits",
    "afresh.cli.run_commands",
    "afresh.cli.progress",
    "afresh.sources.web.http",
    "afresh.sources.web.browser.rendering",
    "afresh.sources.web.robots",
    "afresh.sources.web.hints",
    "afresh.sources.web.lister",
    "yaml",
)


def forking() -> "multiprocessing.context.ForkServerContext":
    """What starts such processes; all tests of a process share one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED])
    return context
