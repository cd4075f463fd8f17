"""The HTTP library, which this room imports from here and from nowhere else."""

from afresh.sources.web.tls import certificates_later

with certificates_later():
    import aiohttp
    from aiohttp.abc import AbstractResolver

__all__ = ["AbstractResolver", "aiohttp"]
