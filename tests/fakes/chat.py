"""What a model on loopback is asked, and what it answers in the form of chat completions."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from afresh.links.score import LinkToScore

_TITLE = re.compile(r"^Title: (.*)$", re.MULTILINE)
_KEYWORDS = re.compile(r"^Keywords: (\[.*\])$", re.MULTILINE)
_LIST = re.compile(r"^--- links (\w+) begin ---$\n(.*)\n^--- links \1 end ---$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Chat:
    """One request for a completion as it came in."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Any

    @property
    def system(self) -> str:
        """The prompt."""
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        """What the prompt is about."""
        return str(self.body["messages"][-1]["content"])

    @property
    def title(self) -> str:
        """The title of the document in question."""
        found = _TITLE.search(self.user)
        return found[1] if found else ""

    @property
    def form(self) -> str | None:
        """The type of answer that was asked for: `json_schema`, `json_object` or none."""
        return (self.body.get("response_format") or {}).get("type")

    @cached_property
    def links(self) -> tuple[LinkToScore, ...]:
        """The links that are to be scored; none where a summary is asked for."""
        found = _LIST.search(self.user)
        entries = [json.loads(line) for line in found[2].split("\n")] if found else []
        return tuple(LinkToScore(each["url"], each["text"]) for each in entries)

    @property
    def keywords(self) -> tuple[str, ...]:
        """The keywords by which links are to be scored."""
        found = _KEYWORDS.search(self.user)
        return tuple(json.loads(found[1])) if found else ()


def completion(content: object, **more: object) -> dict[str, Any]:
    """A completion that says this; `refusal=…` becomes part of its message."""
    message = {"role": "assistant", "content": content, **more}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"object": "chat.completion", "model": "told", "choices": [choice]}
