"""Count the functions and files that one page passes between its claim and its commit.

    python scripts/trace_page.py [--list]

The real command line crawls two pages of a site in this process; `sys.setprofile` records every function of
afresh that the second one calls, in all threads. Comprehensions, lambdas and class bodies are left out, and so
is what runs in parser processes and in the served site, what the worker does for other pages meanwhile (claiming
ahead, showing progress), and what goes on waiting from before: the first page has loaded the model and started
the processes by then.
"""

import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

import afresh
from afresh.cli import main as run_command
from afresh.testing import TinySite

PACKAGE = Path(afresh.__file__).parent
PAGE = 2  # that is traced
BEGIN, END = "claim", "commit"  # methods of the store; both answer with a list
FOR_OTHER_PAGES = {"Worker._feed", "ProgressDisplay.receive"}


class Trace:
    """The functions called between two store calls, in the order of their first call."""

    def __init__(self) -> None:
        self.functions: dict[CodeType, None] = {}
        self.frames: set[FrameType] = set()  # kept, so that a coroutine that goes on is not taken for a call
        self.claims = 0
        self.begun = self.ended = False

    def __call__(self, frame: FrameType, event: str, answer: object) -> None:
        code = frame.f_code
        if self.ended or not code.co_filename.startswith(str(PACKAGE)) or "/testing/" in code.co_filename:
            return
        if event == "call" and not code.co_name.startswith("<") and frame not in self.frames:
            self.frames.add(frame)
            if self.begun and not is_for_other_pages(frame):
                self.functions.setdefault(code)
        if event == "return" and "/store/" in code.co_filename and isinstance(answer, list) and answer:
            self.claims += code.co_name == BEGIN
            self.begun = self.claims >= PAGE
            self.ended = self.begun and code.co_name == END


def is_for_other_pages(frame: FrameType | None) -> bool:
    """Return whether a call, or one of its callers, works for other pages than the traced one."""
    while frame is not None:
        if frame.f_code.co_qualname in FOR_OTHER_PAGES:
            return True
        frame = frame.f_back
    return False


def main() -> int:
    """Crawl two pages and print what it passed; the exit code is that of the crawl."""
    trace = Trace()
    with tempfile.TemporaryDirectory() as folder, TinySite.docs() as site:
        os.environ["AFRESH_NETWORK__ALLOW"] = "127.0.0.1"
        store = f"sqlite:///{folder}/afresh.db"
        site.sitemap(False)  # so that the second page is claimed after the first
        arguments = ["crawl", site.url, "--max-pages", str(PAGE), "--store", store, "--quiet"]
        threading.setprofile(trace)
        sys.setprofile(trace)
        try:
            code = run_command(arguments)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    files = Counter(str(Path(each.co_filename).relative_to(PACKAGE)) for each in trace.functions)
    if "--list" in sys.argv:
        for each in trace.functions:
            print(f"{Path(each.co_filename).relative_to(PACKAGE)}:{each.co_firstlineno} {each.co_qualname}")
    print(f"one page from claim to commit: {len(trace.functions)} functions in {len(files)} files")
    return code


if __name__ == "__main__":
    sys.exit(main())
