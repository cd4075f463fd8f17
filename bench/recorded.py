"""Figures of others on the same corpora, taken once on another machine; ratios compare, seconds hardly do.

Source: the project's workload notes (`shared/bench/README.md`), recorded in November 2026 on 2 cores.
"""

from bench.figures import PHASES, Row

SOURCE = "recorded earlier on a 2-core machine (shared/bench/README.md)"
_CRAWL, _REFRESH, _MIX = PHASES["crawl"], PHASES["refresh"], PHASES["mix"]
_DOCS_MCP = "docs-mcp-server 2.4.4, no embeddings"
_SCRAPY = "Scrapy + markdownify + FTS5"


def _row(system: str, phase: str, corpus: str, pages_per_s: float, ratio: float, cpu_s: float, rss_mb: float) -> Row:
    return Row(system, phase, corpus, pages_per_s=pages_per_s, ratio=ratio, cpu_s=cpu_s, rss_mb=rss_mb)


ROWS = (
    Row("aiohttp, 32 at once", "GET", "pg", pages_per_s=8750, ratio=1, rss_mb=39),
    Row("aiohttp, 32 at once", "GET", "py", pages_per_s=5832, ratio=1, rss_mb=48),
    Row("aiohttp, 32 at once", "conditional GET", "pg", pages_per_s=8410, ratio=1, rss_mb=36),
    Row("aiohttp, 32 at once", "conditional GET", "py", pages_per_s=6277, ratio=1, rss_mb=36),
    _row("wget2 (C)", "crawl, no index", "pg", 4932, 1.8, 0.2, 14),
    _row("wget2 (C)", "crawl, no index", "py", 1609, 4.0, 0.3, 28),
    _row(_DOCS_MCP, _CRAWL, "pg", 12, 726, 98, 929),
    _row(_DOCS_MCP, _CRAWL, "py", 1.6, 3700, 285, 1954),
    _row(_DOCS_MCP, _REFRESH, "pg", 310, 28, 3.8, 318),
    _row(_DOCS_MCP, _REFRESH, "py", 160, 40, 3.3, 318),
    _row(_DOCS_MCP, _MIX, "pg", 75, 112, 14.5, 722),
    _row(_DOCS_MCP, _MIX, "py", 29, 220, 18.4, 722),
    Row(_DOCS_MCP, "one search, command line", "pg", wall_s=2.8, cpu_s=2.7, rss_mb=312),
    _row(_SCRAPY, _CRAWL, "pg", 45, 188, 25, 113),
    _row(f"{_SCRAPY}, HTTP cache", _REFRESH, "pg", 164, 52, 7.1, 119),
    _row("Crawl4AI, HTTP mode", "crawl, Markdown only", "py", 7.8, 718, 51, 245),
)
