"""The section `sinks`: external stores by their names, each with the settings of its kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from afresh.config import forms
from afresh.config.named import NamedSection
from afresh.config.spec import Spec, WrongValue, number, text, texts, whole

SECTION = "sinks"
NEEDED = {"folder": ("path",), "gemini": ("store",), "openai": ("store",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """One external store."""

    kind: str = text(
        None,
        "what it is: `folder` (Markdown files), `gemini` (Gemini File Search) or `openai` "
        "(a vector store of OpenAI or a compatible server)",
        choices=tuple(NEEDED),
    )
    sources: tuple[str, ...] = texts("which sources it holds, as NAME or NAME@VERSION; none: all of them")
    replace: str = text(
        "delete_first",
        "how a changed page gets there: `delete_first`, or `upload_first`, which keeps the old document "
        "until the new one can be searched",
        choices=("delete_first", "upload_first"),
    )
    path: str | None = text(
        None, "of a `folder`: where it is, as seen from the settings file", optional=True, form=forms.file
    )
    store: str | None = text(
        None, "of `gemini` and `openai`: the name or id of the store", optional=True, form=forms.name
    )
    api_key: str | None = field(
        default=None,
        repr=False,
        metadata={
            "spec": Spec(
                kind="text",
                doc="the key of its API; better in the environment, as `AFRESH_SINKS__NAME__API_KEY`",
                optional=True,
                secret=True,
                form=forms.key,
            )
        },
    )
    base_url: str | None = text(
        None, "where its API is; null: where the vendor has it", optional=True, form=forms.api_url
    )
    api_version: str | None = text(
        None, "the version of its API; null: the usual one", optional=True, form=forms.name
    )
    at_once: int = whole(10, "uploads side by side", 1, 100)
    wait_seconds: float = number(60.0, "how long `sync` waits for what the store still processes", 0, 86_400)
    deadline_seconds: float = number(
        1800.0,
        "how long the store may process a document; then it is shown as stuck, and the next sync deletes it "
        "and uploads it again",
        1,
        2_592_000,
    )
    recheck_seconds: float = number(
        600.0, "how long after FAILED a document is looked at again before it is uploaded again", 0, 86_400
    )

    @property
    def place(self) -> str:
        """What tells one remote store from another."""
        return " ".join(filter(None, (self.kind, self.path, self.base_url, self.store)))


def _agree(sinks: Mapping[str, Any]) -> None:
    """Refuse two stores in one place: each would take the documents of the other for strays of its own."""
    for (one, first), (two, second) in combinations(sinks.items(), 2):
        if _overlap(first, second):
            raise WrongValue(f"{SECTION}.{two} is the same place as {SECTION}.{one}, or within it")


def _overlap(one: SinkSettings, two: SinkSettings) -> bool:
    """Whether two stores are one, or a folder stands in the other."""
    if one.kind != "folder" or two.kind != "folder":
        return one.place == two.place
    first, second = (Path(str(each.path)).expanduser().resolve() for each in (one, two))
    return first.is_relative_to(second) or second.is_relative_to(first)


def _check(name: str, given: Mapping[str, Any]) -> None:
    kind = given.get("kind")
    if kind is None:
        raise WrongValue(f"{SECTION}.{name}.kind is missing: one of {', '.join(NEEDED)}")
    for key in NEEDED[kind]:
        if not given.get(key):
            raise WrongValue(f"{SECTION}.{name}.{key} is missing: kind: {kind} needs it")


SINKS = NamedSection(SECTION, SinkSettings, _check, _agree)
