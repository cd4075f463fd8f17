"""Provide a scripted web site, for the demo and for the tests of afresh and of plug-ins."""

from afresh.testing.script import FrozenClock, Gate
from afresh.testing.site import RecordedRequest, RequestLog, TinySite

__all__ = ["FrozenClock", "Gate", "RecordedRequest", "RequestLog", "TinySite"]
