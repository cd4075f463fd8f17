"""Request chat completions within budgets, and read prompts and answers."""

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from afresh.config.models import AiSettings
from afresh.dataclass import dataclass
from afresh.errors import AfreshError, ConfigError
from afresh.files import read_small_file
from afresh.models.endpoint import ApiService, Endpoint
from afresh.ports import JsonApi, JsonReply

MAX_PROMPT_BYTES = 100_000
TRIES = 2  # calls for a usable answer


@dataclass(slots=True)
class DailyCalls:
    """The calls in the last 24 hours and their limit, shared by concurrent runs."""

    limit: int | None = None
    spent: int = 0
    runs: int = 0  # that currently share it


class CallBudget:
    """Counts the calls of one run for summaries and link scores."""

    def __init__(self, per_run: int | None = None, day: DailyCalls | None = None) -> None:
        self.calls = 0
        self._per_run = per_run
        self._day = day or DailyCalls()

    @property
    def refusal(self) -> str | None:
        budgets = (
            ("ai.budget_per_run", self._per_run, self.calls, "the next run"),
            ("ai.budget_per_day", self._day.limit, self._day.spent, "a run tomorrow"),
        )
        for name, limit, spent, when in budgets:
            if limit is not None and spent >= limit:
                return (
                    f"{name} ({limit:,}) is used up: {when} does the rest. To continue now, raise it (null: no limit)"
                )
        return None

    def spend(self) -> None:
        self.calls += 1
        self._day.spent += 1


class CompletionClient:
    """Sends requests to the configured chat model; create one per run."""

    def __init__(self, service: ApiService, ai: AiSettings, caller: JsonApi, budget: CallBudget | None = None) -> None:
        self.ai = ai
        self.calls = 0
        self.budget = budget or CallBudget(ai.budget_per_run)
        self._down: AfreshError | None = None
        headers = {"Authorization": f"Bearer {ai.api_key}"} if ai.api_key else {}
        url = f"{ai.address}/chat/completions"
        self.endpoint = Endpoint(service, caller, url, headers, ai.timeout_seconds, ai.api_key)

    async def ask(
        self,
        prompt: str,
        text: str,
        form: Mapping[str, object] = MappingProxyType({}),
        *,
        passes: frozenset[int] = frozenset({200}),
        again: bool = False,
    ) -> JsonReply:
        """Send one call with a prompt and a text; raise an error for a status that is not in `passes`.

        `form` holds further fields of the request. With `again`, the call repeats a rejected one with another `form`,
        and does not count in the budget.
        """
        down = self.endpoint.service.down
        if self._down is not None:
            raise down(str(self._down))
        if not again:
            if refusal := self.budget.refusal:
                raise down(refusal)
            self.budget.spend()
            self.calls += 1
        messages = [{"role": "system", "content": prompt}, {"role": "user", "content": text}]
        try:
            reply = await self.endpoint.ask(
                {"model": self.ai.model or "", "messages": messages, "stream": False, **form}
            )
            if reply.status not in passes:
                raise self.endpoint.refusal(reply)
        except down as error:
            self._down = error
            raise
        return reply

    def describe_unusable(self, answer: str) -> str:
        return (
            f"{self.endpoint.host} answered with {answer} instead of {self.endpoint.service.gives}: "
            "the next run tries again; if it persists, check ai.model"
        )


def chat_recipe(ai: AiSettings, prompt: str, template: str) -> str:
    """Return a text that identifies model, prompt and message template; if it changes, stored answers are outdated."""
    digest = hashlib.sha256(f"{prompt}\n{template}".encode()).hexdigest()
    return f"openai/{ai.model or ''}+{digest[:12]}"


def mark_of(text: str) -> str:
    """Return a delimiter for a text in a prompt: the hash of the text, because no text can contain its own hash."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


class UnusableAnswer(ValueError):
    """An answer without the expected content; the message says what it has instead."""


def content_in(answer: Any) -> str:
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        refused, content = message.get("refusal"), message["content"]
    except (TypeError, KeyError, IndexError, AttributeError):
        raise UnusableAnswer("something other than a chat completion") from None
    if refused or choice.get("finish_reason") == "content_filter":
        raise UnusableAnswer("a refusal")
    if not isinstance(content, str):
        raise UnusableAnswer("no text")
    return content


def read_prompt(name: str, own: str | None, key: str) -> str:
    """Read the file `own`, which the setting `key` names; without one, return the built-in prompt of this name."""
    if own is None:
        return files("afresh.models").joinpath("prompts", name).read_text("utf-8").strip()
    try:
        data = read_small_file(Path(own).expanduser(), MAX_PROMPT_BYTES)
        text = data.decode("utf-8-sig").replace("\r\n", "\n").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{key}: {own} cannot be read: {why}") from None
    if not text:
        raise ConfigError(f"{key}: {own} is empty")
    return text
