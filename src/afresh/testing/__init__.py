"""Fakes that ship with afresh: for its own tests, its demo, and the tests of those who extend it."""

from afresh.testing.clock import FrozenClock
from afresh.testing.embedder import FakeEmbedder, Trouble
from afresh.testing.fetcher import ScriptedFetcher
from afresh.testing.script import Gate
from afresh.testing.sink import CUT, Fault, ScriptedSink
from afresh.testing.site import Asked, RequestLog, TinySite

__all__ = [
    "CUT",
    "Asked",
    "FakeEmbedder",
    "Fault",
    "FrozenClock",
    "Gate",
    "RequestLog",
    "ScriptedFetcher",
    "ScriptedSink",
    "TinySite",
    "Trouble",
]
