"""Determine the language of a text: the declared one, unless the text clearly contradicts it."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from afresh.text.language import (
    are_kin,
    contradicts_english,
    guess_by_sample,
    is_long,
    is_plainly_english,
    normalise_tag,
    primary,
    prose_of,
)

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

CLEAR = 0.6  # probability of a language
CONFIRMED = 0.3  # the same if the small guess agrees
_NO_LANGUAGE = frozenset({"und", "mul", "zxx", "mis", "x", "i"})


def language_of(text: str, *told: str | None) -> str | None:
    """Return the tag of a text; the first declared tag that agrees with the text keeps its region and script.

    A small guess usually suffices; the large model is loaded only if it does not.
    """
    hints = [tag for raw in told if (tag := normalise_tag(raw)) and primary(tag) not in _NO_LANGUAGE]
    sample = prose_of(text)
    if hints and primary(hints[0]) == "en" and is_plainly_english(sample):
        return hints[0]
    guess = guess_by_sample(sample)
    if not hints:
        return guess or (classify(sample) if is_long(sample) else None)
    return _agreeing(hints, guess) or _settle(sample, hints, guess)


def _agreeing(hints: Sequence[str], language: str | None) -> str | None:
    return next((hint for hint in hints if language and are_kin(hint, language)), None)


def _settle(sample: str, hints: Sequence[str], guess: str | None) -> str:
    """Return the first declared tag if the text does not confirm any, unless it is clearly wrong."""
    doubtful = guess is not None or (primary(hints[0]) == "en" and contradicts_english(sample))
    if not doubtful or not is_long(sample):
        return hints[0]
    found = classify(sample, CONFIRMED if guess else CLEAR)
    if found is None or (guess and not are_kin(found, guess)):
        return hints[0]
    return _agreeing(hints, found) or found


def classify(sample: str, enough: float = CLEAR) -> str | None:
    """Return the language of prose according to a large model; None if it is not clear."""
    language, share = _model().classify(sample)
    return str(language) if share >= enough else None


@cache
def _model() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    model.set_languages([label for label in model.labels if len(label) == 2])  # dialects only add uncertainty
    return model
