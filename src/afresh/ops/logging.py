"""Log one line per event, without control characters and secrets; errors in logging are ignored."""

import errno
import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

from afresh.config import Config, secret_values
from afresh.errors import ConfigError
from afresh.files import open_private_log
from afresh.text.redact import mask_secrets, one_line

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
MAX_VALUE_CHARS = 4_000  # length of one value, to keep the log readable
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


class LineFormatter(logging.Formatter):
    """Formats a log record, with the values in its attribute `data`, as a line of text or JSON."""

    def __init__(self, *, as_json: bool = False, secrets: Sequence[str] = ()) -> None:
        super().__init__()
        self._as_json = as_json
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        fields = self._fields(record)
        if self._as_json:
            return json.dumps(fields)
        at, level, event = fields.pop("at"), fields.pop("level"), fields.pop("event")
        return " ".join((at, level.upper(), event, *(f"{key}={_quoted(value)}" for key, value in fields.items())))

    def _fields(self, record: logging.LogRecord) -> dict[str, str]:
        moment = datetime.fromtimestamp(record.created, UTC)
        data: Mapping[str, object] = getattr(record, "data", {})
        try:
            event = record.getMessage()
        except (TypeError, ValueError):  # the arguments do not match the format string of a library
            event = str(record.msg)
        fields = {
            "at": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": self._safe(event),
        }
        fields |= {
            f"its_{name}" if name in fields else name: self._safe(str(value))
            for name, value in data.items()
            if value is not None
        }
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = self._safe(f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}")
            fields["trace"] = self._safe(self.formatException(record.exc_info))
        return fields

    def _safe(self, text: str) -> str:
        """Escape control characters, then mask secrets, so that a secret with a line break in it is masked whole."""
        line = mask_secrets(one_line(text), self._secrets)
        return line if len(line) <= MAX_VALUE_CHARS else f"{line[:MAX_VALUE_CHARS]}…"


def _quoted(value: str) -> str:
    plain = value and not any(each in value for each in ' "=')
    return value if plain else json.dumps(value, ensure_ascii=False)


class SafeHandler(logging.Handler):
    """Writes log lines; reports the first error on stderr, and ignores further ones."""

    def __init__(self, place: str, write: Callable[[str], None], level: int, lines: LineFormatter) -> None:
        super().__init__(level)
        self._place = place
        self._write = write
        self._complained = False
        self.setFormatter(lines)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(self.format(record) + "\n")
        except (OSError, ValueError) as error:
            was_reported, self._complained = self._complained, True
            why = getattr(error, "strerror", None) or error
            with suppress(OSError, ValueError):
                if not was_reported:
                    to_stderr(f"afresh: {self._place} cannot be written ({why}); afresh continues\n")


def event_line(text: str, level: int = logging.INFO) -> str:
    record = logging.LogRecord("afresh", level, "", 0, text, None, None)
    return LineFormatter(as_json=True).format(record) + "\n"


def to_stderr(line: str) -> None:
    """Write to the current `sys.stderr`, which a live display may replace temporarily."""
    if sys.stderr is not None:
        sys.stderr.write(line)
        sys.stderr.flush()


class LogFile:
    """A log file that several processes may append to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None
        try:
            self._file = open_private_log(path)
        except OSError as error:
            if error.errno not in _FULL:
                raise ConfigError(f"log.file: {path} cannot be written: {error.strerror}") from None

    def write(self, line: str) -> None:
        if self._file is None:
            self._file = open_private_log(self.path)
        self._file.write(line.encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


@contextmanager
def configure_logging(
    config: Config, *, verbose: int = 0, quiet: bool = False, as_json: bool = False
) -> Iterator[None]:
    """Log to stderr and to the configured file in this context."""
    secrets = secret_values(config)
    stderr_level = logging.CRITICAL if quiet else (logging.ERROR, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    with ExitStack() as stack:
        _attach(stack, SafeHandler("stderr", to_stderr, stderr_level, LineFormatter(as_json=as_json, secrets=secrets)))
        level = stderr_level
        if config.log.file is not None:
            file = stack.enter_context(closing(LogFile(Path(config.log.file).expanduser())))
            lines = LineFormatter(as_json=config.log.format == "json", secrets=secrets)
            level = min(stderr_level, LEVELS[config.log.level])
            _attach(stack, SafeHandler(f"log.file {file.path}", file.write, LEVELS[config.log.level], lines))
        ours = logging.getLogger("afresh")
        stack.callback(ours.setLevel, ours.level)
        ours.setLevel(level)
        yield


def _attach(stack: ExitStack, handler: logging.Handler) -> None:
    """Add a handler to the root logger (which also gets records of libraries) until the stack is closed."""
    logging.getLogger().addHandler(handler)
    stack.callback(logging.getLogger().removeHandler, handler)
