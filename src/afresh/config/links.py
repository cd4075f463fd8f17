"""The section `links`: which links are worth finding."""

from collections.abc import Mapping
from dataclasses import dataclass

from afresh.config import forms
from afresh.config.spec import number, text, weights

SCORERS = ("auto", "offline", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksSettings:
    """By which keywords links are scored, and who scores them."""

    keywords: Mapping[str, float] = weights(
        "what links are scored by: keywords, each with its weight from 0 to 1; none: no link is scored"
    )
    scorer: str = text(
        "auto",
        "who scores links: `offline` compares words, `model` asks the model of the section `ai`, "
        "`auto` asks it if `ai.provider` names one",
        choices=SCORERS,
    )
    unknown_keyword_weight: float = number(
        0.25, "the weight of a keyword that the model names although nobody asked for it", 0, 1
    )
    prompt_file: str | None = text(
        None,
        "a text file with a prompt of your own for scoring links; null: the one that comes with afresh",
        optional=True,
        form=forms.file,
    )
