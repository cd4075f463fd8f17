"""How a command ends: the exit code, and one clear sentence when it went wrong."""

import errno
import logging
import os
import sys

import click

from afresh.cli.program import program
from afresh.cli.streams import give_up, is_broken, print_anything, stand_in
from afresh.errors import AfreshError, AlreadyKept, ConfigError, StoreError, UsageError
from afresh.present.safe_text import clean
from afresh.text.redact import mask_secrets

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def guarded(arguments: list[str]) -> int:
    """Runs the program; whatever happens ends as an exit code."""
    stand_in()
    print_anything()
    try:
        code = program.main(args=arguments or ["--help"], prog_name="afresh", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        give_up(sys.stdout)  # someone like `head` has seen enough
        return FAILED
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.ClickException as wrong:
        return _told(arguments, _sentence(wrong), WRONG_USE)
    except AfreshError as wrong:
        _trace(arguments)
        return _told(arguments, _in_flags(wrong), exit_code(wrong))
    except Exception as surprise:
        if isinstance(surprise, OSError) and (surprise.errno in NO_ROOM or is_broken()):
            give_up(sys.stdout)
            return _told([], f"the answer cannot be written: {surprise.strerror}", FAILED)
        _trace(arguments)
        return _told(arguments, _unexpected(surprise), FAILED)
    return int(code or 0) if arguments else WRONG_USE


def exit_code(wrong: AfreshError) -> int:
    """2 for wrong use, settings or store; 1 for work that failed."""
    return WRONG_USE if isinstance(wrong, ConfigError | UsageError | StoreError) else FAILED


def _sentence(wrong: click.ClickException) -> str:
    context = getattr(wrong, "ctx", None)
    told = wrong.format_message().rstrip(".")
    told = f"{told[:1].lower()}{told[1:]}{'' if told.endswith('?') else '.'}"
    return f"{told} Try `{context.command_path} --help`." if context else told


def _in_flags(wrong: AfreshError) -> str:
    """What went wrong; the parameters of REST and MCP that it names are flags here."""
    if not isinstance(wrong, AlreadyKept):
        return str(wrong)
    return str(wrong).replace("set `again`", "give --again").replace("give `version`", "give --version")


def _unexpected(surprise: Exception) -> str:
    return (
        f"something went wrong that should not: {type(surprise).__name__}: {surprise}. "
        "Run it again with -vv for the details."
    )


def _told(arguments: list[str], sentence: str, code: int) -> int:
    """Prints the sentence, and with --json also as an object, so that a script always gets one document."""
    sentence = mask_secrets(sentence)
    try:
        if _wants_json_log(arguments):
            from afresh.ops.logging import event_line

            print(event_line(sentence, logging.ERROR), end="", file=sys.stderr)
        else:
            for line in sentence.splitlines() or [""]:
                print(f"afresh: {clean(line)}", file=sys.stderr)
    except OSError:
        give_up(sys.stderr)
    if "--json" in before_dashes(arguments):
        from afresh.present.as_json import write

        write({"error": sentence, "exit_code": code}, sys.stdout)
        if is_broken():
            give_up(sys.stdout)
    return code


def _wants_json_log(arguments: list[str]) -> bool:
    joined = " ".join(before_dashes(arguments))
    return "--log-format json" in joined or "--log-format=json" in joined


def before_dashes(arguments: list[str]) -> list[str]:
    """The arguments that may be options."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _trace(arguments: list[str]) -> None:
    options = before_dashes(arguments)
    loud = sum(each.count("v") for each in options if each.strip("-v") == "" and each[:2] != "--")
    loud += options.count("--verbose")
    if loud > 1 or os.environ.get("AFRESH_DEBUG", "0") not in {"", "0"}:
        import traceback

        if _wants_json_log(arguments):
            from afresh.ops.logging import event_line

            print(event_line(traceback.format_exc(), logging.DEBUG), end="", file=sys.stderr)
        else:
            print(mask_secrets(clean(traceback.format_exc(), lines=True)), file=sys.stderr)
