"""Request chat completions in one run: prompts, budgets, calls, and the text of the answers."""

import asyncio
import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from afresh.config.models import AiSettings
from afresh.errors import AfreshError, ConfigError
from afresh.files import read_small_file
from afresh.models.endpoint import ApiService, Endpoint, Sleep, utc_now
from afresh.ports import Clock, JsonApi, JsonReply
from afresh.text.plain import cut, joined, visible, without_marks, without_thoughts

MAX_PROMPT_BYTES = 100_000
_MAX_ANSWER_CHARS = 100_000  # the rest of an answer is ignored
_LABEL = re.compile(r"(?:summary|zusammenfassung|résumé|摘要|概要)\s*[:：]\s*", re.IGNORECASE)
_REFUSAL = re.compile(
    r"(?:(?:i(?:['’]m| am) (?:very |so )?)?sorry[,.]? (?:but )?i\b|as an ai\b"
    r"|i(?:['’]m| am) (?:unable|not able) to\b|i do(?:n['’]t| not) have (?:access|enough)"
    r"|i (?:can(?:['’]t|not| not)|won['’]t|will not) (?:help|assist|provide|summari[sz]e|comply|process"
    r"|access|fulfil|create|generate|write|answer|do)\b)",
    re.IGNORECASE,
)


@dataclass(slots=True)
class DailyCalls:
    """The calls of the last 24 hours, shared by concurrent runs."""

    limit: int | None = None
    spent: int = 0
    runs: int = 0  # that currently share it


class CallBudget:
    """Counts the calls of one run; summaries and link scores share it."""

    def __init__(self, per_run: int | None = None, day: DailyCalls | None = None) -> None:
        self.calls = 0
        self._per_run = per_run
        self._day = day or DailyCalls()

    @property
    def refusal(self) -> str | None:
        """Return why no further call may be made, or None."""
        budgets = (
            ("ai.budget_per_run", self._per_run, self.calls, "the next run"),
            ("ai.budget_per_day", self._day.limit, self._day.spent, "a run tomorrow"),
        )
        for name, limit, spent, when in budgets:
            if limit is not None and spent >= limit:
                rest = f"the rest follows with {when}, or raise it (null: no limit)"
                return f"{name} ({limit:,}) is spent: {rest}"
        return None

    def spend(self) -> None:
        """Count one call."""
        self.calls += 1
        self._day.spent += 1


class CompletionClient:
    """Sends requests to a model; create one per run."""

    def __init__(
        self,
        service: ApiService,
        caller: JsonApi,
        *,
        base_url: str,
        api_key: str | None = None,
        allowance: CallBudget | None = None,
        timeout_seconds: float = 60.0,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = utc_now,
    ) -> None:
        self.calls = 0
        self.allowance = allowance or CallBudget()
        self._down: AfreshError | None = None
        self.endpoint = Endpoint(
            service,
            caller,
            f"{base_url}/chat/completions",
            {"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout_seconds,
            (api_key,) if api_key else (),
            sleep,
            clock,
        )

    async def ask(
        self, body: object, *, passes: frozenset[int] = frozenset({200}), again: bool = False
    ) -> JsonReply:
        """Return the answer to one paid call; raise the matching error if its status is not in `passes`.

        With `again` it is the same call in another form, after a refusal, and is not counted.
        """
        down = self.endpoint.service.down
        if self._down is not None:
            raise down(str(self._down))
        if not again:
            if refusal := self.allowance.refusal:
                raise down(refusal)
            self.allowance.spend()
            self.calls += 1
        try:
            reply = await self.endpoint.ask(body)
            if reply.status not in passes:
                raise self.endpoint.refusal(reply)
        except down as error:
            self._down = error
            raise
        return reply


def completions_for(
    service: ApiService, ai: AiSettings, caller: JsonApi | None, allowance: CallBudget
) -> CompletionClient:
    """Return the client for the model of the settings, for one run."""
    if caller is None:
        raise ValueError("ai.provider: openai needs a caller")
    address, key = ai.address or "", ai.api_key
    return CompletionClient(
        service,
        caller,
        base_url=address,
        api_key=key,
        allowance=allowance,
        timeout_seconds=ai.timeout_seconds,
    )


def chat_body(model: str, system: str, user: str) -> dict[str, Any]:
    """Return the request for a completion."""
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    return {"model": model, "messages": messages, "stream": False}


def chat_recipe(model: str, prompt: str, frame: str) -> str:
    """Return a fingerprint of model and prompt, to distinguish answers that were made differently."""
    words = f"{prompt}\n{frame}"
    return f"openai/{model}+{hashlib.sha256(words.encode()).hexdigest()[:12]}"


def mark_of(text: str) -> str:
    """Return a mark to frame a text in a prompt: a hash of the text, so that the text cannot contain it."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


class UnusableAnswer(ValueError):
    """An unusable answer; the message says what it is instead."""


def content_in(answer: Any) -> str:
    """Return the text of a chat completion; raise UnusableAnswer if there is none or the model refuses."""
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


def summary_in(answer: Any, most: int) -> str:
    """Return the summary in a chat completion: plain text on one line, cut at a sentence."""
    said = without_thoughts(visible(content_in(answer)[:_MAX_ANSWER_CHARS]))
    text = joined(filter(None, map(without_marks, said.split("\n"))))
    text = text[label.end() :] if (label := _LABEL.match(text)) else text
    if text[:1] + text[-1:] in ('""', "“”", "„“", "«»", "「」") and len(text) > 2:
        text = text[1:-1].strip()
    if not any(map(str.isalnum, text)):
        raise UnusableAnswer("an empty text")
    if _REFUSAL.match(text):
        raise UnusableAnswer("a refusal")
    return cut(text, most)


def prompt(name: str, own: str | None, key: str) -> str:
    """Return the built-in prompt of this name, or the content of the file that the setting `key` names.

    It reads a file, so call it in a thread.
    """
    if own is None:
        return files("afresh.models").joinpath("prompts", name).read_text("utf-8").strip()
    try:
        data = read_small_file(Path(own).expanduser(), MAX_PROMPT_BYTES)
        words = data.decode("utf-8-sig").replace("\r\n", "\n").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{key}: {own} cannot be read: {why}") from None
    if not words:
        raise ConfigError(f"{key}: {own} is empty")
    return words
