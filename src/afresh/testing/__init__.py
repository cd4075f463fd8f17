"""Provide fakes for the tests of afresh, for its demo, and for the tests of plug-ins."""

from afresh.testing.embedder import EmbedderFault, FakeEmbedder
from afresh.testing.script import FrozenClock, Gate, ScriptedFetcher
from afresh.testing.sink import CUT, Fault, ScriptedSink
from afresh.testing.site import RecordedRequest, RequestLog, TinySite

__all__ = [
    "CUT",
    "EmbedderFault",
    "FakeEmbedder",
    "Fault",
    "FrozenClock",
    "Gate",
    "RecordedRequest",
    "RequestLog",
    "ScriptedFetcher",
    "ScriptedSink",
    "TinySite",
]
