"""Trouble, told to agents: one sentence that names the fix, in the words of the tools."""

from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from afresh.errors import AfreshError
from afresh.server.mcp.framing import one_line
from afresh.text.redact import mask_secrets

_WORDS = {  # commands that the sentences of the use cases name, and the tools that do the same
    "`afresh sources`": "list_libraries",
    "`afresh status`": "list_jobs",
    "`afresh pages NAME`": "the resource afresh://library/NAME",
    "`afresh refresh`": "refresh_version",
}
LONGEST = 1_000


def sentence(trouble: str) -> str:
    """What went wrong, on one line, without secrets."""
    for command, tool in _WORDS.items():
        trouble = trouble.replace(command, tool)
    return one_line(mask_secrets(trouble), LONGEST)


@contextmanager
def told() -> Iterator[None]:
    """What a user can act on becomes an error of the tool; surprises stay surprises."""
    try:
        yield
    except AfreshError as error:
        raise ToolError(sentence(str(error))) from error


def wrong_arguments(error: ValidationError) -> str:
    """Which arguments are wrong, and what they should be."""
    told = []
    for each in error.errors(include_url=False)[:5]:
        name = ".".join(str(part) for part in each["loc"]) or "arguments"
        if each["type"] == "missing":
            told.append(f"{name} is missing")
        elif each["type"] == "extra_forbidden":
            told.append(f"there is no argument {name}")
        else:
            told.append(f"{name}: {each['msg']}, got {each['input']!r:.80}")
    return sentence("; ".join(told))
