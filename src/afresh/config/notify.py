"""The section `notify`: people who are told through services that apprise knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from afresh.config.named import NamedSection
from afresh.config.spec import Spec, WrongValue, operator_only, texts
from afresh.config.webhooks import EVENTS, event


@operator_only
def service(text: str) -> str:
    """An address in the form of apprise; it holds a secret, so no message quotes it."""
    kind, separator, rest = text.strip().partition("://")
    if not (separator and rest and kind.replace("+", "").isalnum() and text.strip().isprintable()):
        raise WrongValue("expected an address such as slack://…, got a value that is kept secret")
    return text.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """One place where people are told."""

    url: str = field(
        default="",
        repr=False,
        metadata={
            "spec": Spec(
                kind="text",
                doc="where people are told, as apprise writes it: `slack://…`, `mailtos://…`, `ntfys://…`; "
                "it is kept secret, better in the environment, as `AFRESH_NOTIFY__NAME__URL` "
                "([notifications.md](notifications.md))",
                secret=True,
                form=service,
            )
        },
    )
    events: tuple[str, ...] = texts(
        f"what is told, of {', '.join(f'`{name}`' for name in EVENTS)}; none: all", form=event
    )
    sources: tuple[str, ...] = texts("of which sources, as NAME or NAME@VERSION; none: of all of them")


def _check(name: str, given: Mapping[str, Any]) -> None:
    if not given.get("url"):
        raise WrongValue(f"notify.{name}.url is missing: where are people told?")


NOTIFY = NamedSection("notify", NotifySettings, _check)
