"""The URL parser of the WHATWG standard: ada-url, or pywhatwgurl where ada-url has no wheel.

Both give the same URLs (`tests/urls/test_whatwg.py`); ada-url is fifty times faster.
"""

try:
    from ada_url import join_url, normalize_url
except ImportError:
    from pywhatwgurl import URL

    def normalize_url(s: str) -> str:
        """Return a URL in the form of the WHATWG standard; raise ValueError if the text is not a URL."""
        return URL(s).href

    def join_url(base_url: str, s: str) -> str:
        """Resolve a URL against a base URL; raise ValueError if one of them is not a URL."""
        return URL(s, base_url).href


__all__ = ["join_url", "normalize_url"]
