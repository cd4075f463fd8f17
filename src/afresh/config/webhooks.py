"""The section `webhooks`: who may tell that something changed, and who is told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from afresh.config import forms
from afresh.config.named import NamedSection
from afresh.config.spec import Spec, WrongValue, operator_only, text, texts
from afresh.model.labels import is_among

GITHUB = "github"
EVENTS = ("run.finished", "run.braked", "page.new", "page.changed", "page.deleted", "page.moved")


@operator_only
def secret(text: str) -> str:
    """A secret that is one; that it is blank must not mean that everything is signed well."""
    if not text.strip() or not text.isprintable():
        raise WrongValue("expected printable text that is not blank, got a value that is kept secret")
    return text


def event(text: str) -> str:
    """An event that others can be told of."""
    if text not in EVENTS:
        raise WrongValue(f"expected one of {', '.join(EVENTS)}, got {text[:40]!r}")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """One webhook: in where it has no address, out where it has one."""

    secret: str = field(
        default="",
        repr=False,
        metadata={
            "spec": Spec(
                kind="text",
                doc="what its messages are signed with; better in the environment, as "
                "`AFRESH_WEBHOOKS__NAME__SECRET`",
                secret=True,
                form=secret,
            )
        },
    )
    url: str | None = text(
        None,
        "where messages are sent; null: they are taken at `/api/v1/webhooks/NAME`, those of `github` in its "
        "own form ([webhooks.md](webhooks.md))",
        optional=True,
        form=forms.api_url,
    )
    events: tuple[str, ...] = texts(
        f"of one that sends: what it tells, of {', '.join(f'`{name}`' for name in EVENTS)}; none: all",
        form=event,
    )
    sources: tuple[str, ...] = texts("which sources it is for, as NAME or NAME@VERSION; none: all of them")

    def concerns(self, label: str) -> bool:
        """Whether it is for a source."""
        return is_among(label, self.sources)


def _check(name: str, given: Mapping[str, Any]) -> None:
    if not given.get("secret"):
        raise WrongValue(f"webhooks.{name}.secret is missing: messages without a signature prove nothing")
    if name == GITHUB and given.get("url"):
        raise WrongValue("webhooks.github is what GitHub sends: name the one that sends to others otherwise")


WEBHOOKS = NamedSection("webhooks", WebhookSettings, _check)
