"""The section `retention`: how long what is over is kept."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from afresh.config import Config, describe, load
from afresh.config.sources import retention_from
from afresh.errors import ConfigError

NOW = datetime(2030, 6, 30, tzinfo=UTC)


def settings(folder: Path, yaml: str = "", env: dict[str, str] | None = None) -> Config:
    """The settings of a file and variables."""
    (folder / "afresh.yaml").write_text(yaml)
    return load(None, env or {}, {"store.url": f"sqlite:///{folder}/kb.db"}, folder)


def test_R2_G14_deleted_pages_stay_a_month_and_attempts_and_changes_for_ever(tmp_path: Path) -> None:
    assert describe(settings(tmp_path))["retention"] == {
        "deleted_pages": "30d",
        "attempts": None,
        "changes": None,
        "outbox": "30d",
        "former_texts": "30d",
    }


def test_R2_retention_of_a_file_and_of_a_variable(tmp_path: Path) -> None:
    yaml = "retention: {deleted_pages: null, attempts: 2W, changes: 1d12h}\n"
    kept = settings(tmp_path, yaml, {"AFRESH_RETENTION__OUTBOX": "0d"}).retention
    assert (kept.deleted_pages, kept.attempts, kept.changes, kept.outbox) == (None, "2w", "1d12h", "0d")
    past = retention_from(kept).at(NOW)
    assert past.deleted_pages is None
    assert past.attempts == datetime(2030, 6, 16, tzinfo=UTC)
    assert past.outbox == NOW


@pytest.mark.parametrize("value", ["30", "-1d", "soon", "40000d"])
def test_R2_a_retention_that_is_no_length_of_time_is_refused_with_its_line(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r"line 2: retention\.deleted_pages"):
        settings(tmp_path, f'retention:\n  deleted_pages: "{value}"\n')
