"""Fakes that ship with afresh: for its own tests, its demo, and the tests of those who extend it."""

from afresh.testing.asked import Asked, RequestLog
from afresh.testing.attempts import Attempts
from afresh.testing.chat_server import ChatServer
from afresh.testing.city import CitySite
from afresh.testing.clock import FrozenClock
from afresh.testing.embedder import FakeEmbedder, Trouble
from afresh.testing.embedding_server import EmbeddingServer
from afresh.testing.faults import HttpFault
from afresh.testing.fetcher import ScriptedFetcher
from afresh.testing.gate import Gate
from afresh.testing.gemini_server import GeminiServer
from afresh.testing.github_server import GithubServer
from afresh.testing.hostile import HostileSite
from afresh.testing.link_answers import Odd
from afresh.testing.link_scorer import FakeLinkScorer
from afresh.testing.memory_store import MemoryStore
from afresh.testing.script_site import ScriptSite, WalledSite
from afresh.testing.sink import CUT, Fault, ScriptedSink
from afresh.testing.tinysite import TinySite
from afresh.testing.vector_store_server import VectorStoreServer

__all__ = [
    "CUT",
    "Asked",
    "Attempts",
    "ChatServer",
    "CitySite",
    "EmbeddingServer",
    "FakeEmbedder",
    "FakeLinkScorer",
    "Fault",
    "FrozenClock",
    "Gate",
    "GeminiServer",
    "GithubServer",
    "HostileSite",
    "HttpFault",
    "MemoryStore",
    "Odd",
    "RequestLog",
    "ScriptSite",
    "ScriptedFetcher",
    "ScriptedSink",
    "TinySite",
    "Trouble",
    "VectorStoreServer",
    "WalledSite",
]
