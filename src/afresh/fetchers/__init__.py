"""One look at an address."""

from afresh.fetchers.tls import certificates_later

with certificates_later():
    import aiohttp  # noqa: F401 - before any other module of this room does
