"""The section `sinks`: external stores by their names, each with the settings of its kind."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import combinations
from pathlib import Path
from typing import Any

from afresh.config import forms
from afresh.config.spec import Spec, WrongValue, nearest, number, text, texts, whole

SECTION = "sinks"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
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
        1800.0, "how long the store may process a document before it is shown as stuck", 1, 2_592_000
    )
    recheck_seconds: float = number(
        600.0, "how long after FAILED a document is looked at again before it is put anew", 0, 86_400
    )

    @property
    def place(self) -> str:
        """What tells one remote store from another."""
        return " ".join(filter(None, (self.kind, self.path, self.base_url, self.store)))


def specs() -> dict[str, Spec]:
    """What can be set of every external store."""
    return {item.name: item.metadata["spec"] for item in fields(SinkSettings)}


def place_of(dotted: str) -> tuple[str, Spec]:
    """The name of the store and the spec of its setting that `NAME.key` means."""
    name, _, key = dotted.rpartition(".")
    if not _NAME.fullmatch(name):
        raise WrongValue(
            f"{SECTION}.{name or key}: expected a name of small letters, digits, - and _, its settings below"
        )
    if key not in specs():
        raise WrongValue(f"unknown key {SECTION}.{dotted}{nearest(key, list(specs()))}")
    return name, specs()[key]


def from_variable(rest: str, names: Iterable[str]) -> str:
    """`NAME.key` for the rest of a variable, `NAME__KEY`; known names may hold a hyphen."""
    name, _, key = rest.lower().rpartition("__")
    known = {each.replace("-", "_"): each for each in names}
    return f"{known.get(name, name)}.{key}"


def built(values: Mapping[str, object]) -> dict[str, SinkSettings]:
    """The stores that settings `NAME.key` describe; ValueError where one is not enough to be used."""
    by_name: dict[str, dict[str, Any]] = {}
    for dotted, value in values.items():
        name, _, key = dotted.rpartition(".")
        by_name.setdefault(name, {})[key] = value
    sinks = {name: _checked(name, given) for name, given in by_name.items()}
    for (one, first), (two, second) in combinations(sinks.items(), 2):
        if _overlap(first, second):  # each would take the documents of the other for strays of its own
            raise WrongValue(f"{SECTION}.{two} is the same place as {SECTION}.{one}, or within it")
    return sinks


def _overlap(one: SinkSettings, two: SinkSettings) -> bool:
    """Whether two stores are one, or a folder stands in the other."""
    if one.kind != "folder" or two.kind != "folder":
        return one.place == two.place
    first, second = (Path(str(each.path)).expanduser().resolve() for each in (one, two))
    return first.is_relative_to(second) or second.is_relative_to(first)


def _checked(name: str, given: Mapping[str, Any]) -> SinkSettings:
    kind = given.get("kind")
    if kind is None:
        raise WrongValue(f"{SECTION}.{name}.kind is missing: one of {', '.join(NEEDED)}")
    for key in NEEDED[kind]:
        if not given.get(key):
            raise WrongValue(f"{SECTION}.{name}.{key} is missing: kind: {kind} needs it")
    return SinkSettings(**given)
