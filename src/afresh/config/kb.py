"""The section `kb`: a folder of notes and a list of links, told in `index.txt`."""

from dataclasses import dataclass

from afresh.config import forms
from afresh.config.spec import flag, number, text, whole

DAY = 86_400
YEAR = 366 * DAY
MOST = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KbSettings:
    """What the knowledge base is made of, when its links are looked at, and how it follows changes.

    A relative path in the settings file, and a default, starts at that file's folder; one in a variable,
    and any path where there is no file, at the working directory.
    """

    sources_dir: str | None = text(
        None, "the folder whose text files are sources; null: none", optional=True, form=forms.file
    )
    links_file_path: str | None = text(
        None, "the file that lists links, one on each line; null: none", optional=True, form=forms.file
    )
    index_path: str = text("index.txt", "where the index is written", form=forms.file)
    index_cache_path: str = text(
        "index-cache.json", "where the cache is written; its lock stands beside it", form=forms.file
    )
    url_refresh_min_interval_seconds: float = number(
        float(DAY), "after an answer, changed or not, a link is due again this much later", 0, YEAR
    )
    url_refresh_max_age_seconds: float = number(
        7.0 * DAY, "a link whose last answer is older than this is due, whatever else it waits for", 0, YEAR
    )
    url_refresh_budget_per_init: int = whole(50, "links that one `init-kb` asks for at most", 0, MOST)
    url_refresh_fail_backoff_base_seconds: float = number(
        300.0, "wait after a first failure of a link; it doubles with each further one", 0, YEAR
    )
    url_refresh_fail_backoff_max_seconds: float = number(
        float(DAY), "the longest wait after failures of a link", 0, YEAR
    )
    runtime_refresh_enabled: bool = flag(True, "keep index and cache up to date while afresh runs on")
    runtime_refresh_tick_seconds: float = number(60.0, "how often links that are due are asked for", 0.1, DAY)
    url_refresh_budget_per_tick: int = whole(5, "links that one tick asks for at most", 0, MOST)
    file_watch_enabled: bool = flag(True, "follow changes of files below `kb.sources_dir`")
    file_watch_debounce_seconds: float = number(1.0, "quiet time before a changed file is read", 0, 3600)
    links_watch_enabled: bool = flag(True, "follow changes of `kb.links_file_path`")
    links_watch_debounce_seconds: float = number(1.0, "quiet time before a changed list is read", 0, 3600)

    @property
    def in_use(self) -> bool:
        """Whether there is a knowledge base at all."""
        return bool(self.sources_dir or self.links_file_path)
