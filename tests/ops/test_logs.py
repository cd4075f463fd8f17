"""The log: one line per event, escaped and masked, and never in the way of the work (F13, F111, P19)."""

import json
import logging
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from afresh.cli import main
from afresh.config import Config, load
from afresh.errors import ConfigError
from afresh.ops.logging import LineFormatter, configure_logging

log = logging.getLogger("afresh.test")
HOSTILE = "https://x.org/a\nrun ended\x1b[2J\u202e?token=hush&page=2"


def settings(folder: Path, **log_keys: object) -> Config:
    return load(None, {}, {f"log.{key}": value for key, value in log_keys.items()}, folder)


def written(file: Path) -> list[str]:
    return file.read_text("utf-8").split("\n")[:-1]


@pytest.mark.parametrize("form", ["text", "json"])
def test_F111_an_event_is_one_line_without_secrets(tmp_path: Path, form: str) -> None:
    file = tmp_path / "afresh.log"
    with configure_logging(settings(tmp_path, file=str(file), format=form)):
        log.info("page failed", extra={"data": {"url": HOSTILE, "status": 503, "nothing": None}})
        log.warning("the look at %s failed", HOSTILE)
        log.error("broken", exc_info=ValueError(f"bad {HOSTILE}"))
    lines = written(file)
    assert len(lines) == 3
    assert all(line.isprintable() and "hush" not in line and "page=2" in line for line in lines)


def test_S6_F125_a_log_is_private_from_its_creation_and_narrowed_where_it_is_not(tmp_path: Path) -> None:
    old, new, linked = tmp_path / "old.log", tmp_path / "new.log", tmp_path / "elsewhere.log"
    for each in (old, linked):
        each.touch()
        each.chmod(0o644)
    (tmp_path / "link.log").symlink_to(linked)
    before = os.umask(0)
    try:
        for file in (old, new, tmp_path / "link.log", Path(os.devnull)):
            was = stat.S_IMODE(Path(os.devnull).stat().st_mode)
            with configure_logging(settings(tmp_path, file=str(file))):
                log.warning("written")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (old, new, linked, Path(os.devnull))]
    assert modes == [0o600, 0o600, 0o644, was]  # a link or a device is the operator's own arrangement
    assert len(written(old)) == len(written(new)) == len(written(linked)) == 1


def test_F111_text_and_json_say_the_same(tmp_path: Path) -> None:
    record = logging.LogRecord("afresh", logging.INFO, "", 0, "page failed", (), None)
    record.data = {"url": "https://x.org/", "reason": 'said "no"'}
    record.created = 0.25
    assert LineFormatter().format(record) == (
        '1970-01-01T00:00:00.250Z INFO page failed url=https://x.org/ reason="said \\"no\\""'
    )
    assert json.loads(LineFormatter(as_json=True).format(record)) == {
        "at": "1970-01-01T00:00:00.250Z",
        "level": "info",
        "event": "page failed",
        "url": "https://x.org/",
        "reason": 'said "no"',
    }
    record.data = {"event": "run.finished", "at": "x"}
    reported = json.loads(LineFormatter(as_json=True).format(record))
    assert (reported["event"], reported["its_event"], reported["at"][:4]) == ("page failed", "run.finished", "1970")


def test_F111_a_value_is_cut_where_nobody_would_read_on() -> None:
    record = logging.LogRecord("afresh", logging.INFO, "", 0, "x" * 100_000, (), None)
    assert len(LineFormatter().format(record)) < 5_000


def test_F111_a_wrong_call_of_a_library_is_no_error() -> None:
    record = logging.LogRecord("other", logging.ERROR, "", 0, "%d files", ("three",), None)
    assert LineFormatter().format(record).endswith("ERROR %d files")


def test_P19_secrets_of_the_settings_never_reach_the_log(tmp_path: Path) -> None:
    file = tmp_path / "afresh.log"
    config = settings(tmp_path, file=str(file))
    config = replace(config, store=replace(config.store, url="postgresql://me:hush9@db/kb"))
    with configure_logging(config):
        log.error("cannot log in as me with hush9 at %s", config.store.url)
    assert "hush9" not in file.read_text()
    assert "postgresql://***@db/kb" in file.read_text()


@pytest.mark.parametrize(
    ("verbose", "quiet", "displayed"), [(0, False, "e"), (1, False, "iwe"), (2, False, "diwe"), (0, True, "")]
)
def test_how_loud_stderr_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verbose: int, quiet: bool, displayed: str
) -> None:
    with configure_logging(settings(tmp_path), verbose=verbose, quiet=quiet):
        for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
            log.log(level, "told")
    reported = capsys.readouterr().err.splitlines()
    assert "".join(line.split(" ")[1][0].lower() for line in reported) == displayed


def test_the_level_of_the_file_is_a_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "afresh.log"
    with configure_logging(settings(tmp_path, file=str(file), level="warning"), verbose=1):
        log.info("small")
        log.warning("great")
    assert [line.split(" ", 1)[1] for line in written(file)] == ["WARNING great"]
    assert "small" in capsys.readouterr().err


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    before = (list(logging.getLogger().handlers), logging.getLogger("afresh").level)
    with configure_logging(settings(tmp_path, file=str(tmp_path / "x.log")), verbose=2):
        pass
    assert (logging.getLogger().handlers, logging.getLogger("afresh").level) == before


def test_F13_a_full_disk_for_the_log_does_not_stop_the_work(
    tmp_path: Path, dev_full: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with configure_logging(settings(tmp_path, file=str(dev_full))):
        log.warning("one")
        log.warning("two")
    reported = capsys.readouterr().err
    assert reported == "afresh: log.file /dev/full cannot be written (No space left on device); afresh continues\n"


def test_F13_a_closed_stderr_does_not_stop_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with configure_logging(settings(tmp_path)):
        monkeypatch.setattr("sys.stderr", None)
        log.error("nobody hears it")
        with (tmp_path / "closed").open("w") as closed:
            monkeypatch.setattr("sys.stderr", closed)
        log.error("nobody hears this either")


@pytest.mark.parametrize("place", [lambda folder: folder, lambda folder: folder / "no" / "x.log"])
def test_F87_a_log_file_that_cannot_be_is_named(tmp_path: Path, place: Callable[[Path], Path]) -> None:
    with (
        pytest.raises(ConfigError, match=r"^log\.file: .* cannot be written: "),
        configure_logging(settings(tmp_path, file=str(place(tmp_path)))),
    ):
        pass


def test_AFRESH_LOG_is_short_for_the_file(tmp_path: Path) -> None:
    assert load(None, {"AFRESH_LOG": "a.log"}, {}, tmp_path).log.file == "a.log"
    both = {"AFRESH_LOG": "a.log", "AFRESH_LOG__FILE": "b.log"}
    assert load(None, both, {}, tmp_path).log.file == "b.log"


def test_F111_log_format_json_is_for_stderr_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFRESH_WEBHOOKS__OPS__SECRET", "hush-hush-hush")
    config = load(None, os.environ, {}, tmp_path)
    with configure_logging(config, verbose=1, as_json=True):
        logging.getLogger("afresh.test").info(
            "one\nline", extra={"data": {"url": "https://x/?token=abc\x1b[31m", "secret": "hush-hush-hush"}}
        )
    (line,) = capsys.readouterr().err.splitlines()
    reported = json.loads(line)
    assert (reported["event"], reported["secret"]) == ("one\\nline", "***")
    assert "abc" not in line
    assert "hush" not in line
    store = f"sqlite:///{tmp_path / 'kb.db'}"
    assert main(["webhooks", "--log-format", "json", "-v", "--store", store, "--json"]) == 2  # no store yet
    assert main(["token", "create", "--scope", "read", "--log-format", "json", "--store", store]) == 0
    capsys.readouterr()
    assert main(["webhooks", "--store", store, "--json", "--send"]) == 0
    assert json.loads(capsys.readouterr().out) == []
