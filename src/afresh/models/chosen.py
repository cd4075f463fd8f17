"""Which models a store works with: the one that answers today, and the one that the settings want."""

from typing import NamedTuple

from afresh.config.embedding import EmbeddingSettings
from afresh.errors import EmbedderDown
from afresh.models.choose import check_installed, embedder_for, remembered
from afresh.ports import Caller, Embedder


class Chosen(NamedTuple):
    """The embedders of a store, and what there is to say about them."""

    asking: Embedder | None = None  # makes vectors of questions: the one that answers, or none
    acting: Embedder | None = None  # makes vectors of new text
    wanted: Embedder | None = None  # that the settings name
    notes: tuple[str, ...] = ()


def chosen(settings: EmbeddingSettings, serving: str | None, caller: Caller | None) -> Chosen:
    """What is to be used: vectors can only be compared with those of the model that made them."""
    try:
        wanted = embedder_for(settings, caller)
        if wanted is not None:
            check_installed(wanted.model)
    except EmbedderDown as missing:
        if settings.model is not None or settings.provider != "local":
            raise
        return Chosen(notes=(f"search goes by words alone: {missing}",))
    if wanted is None or serving is None:
        return Chosen(None, wanted, wanted)
    if serving == wanted.model:
        return Chosen(wanted, wanted, wanted)
    acting = remembered(serving, settings, caller)
    if acting is None:
        gone = f"the index is made by {serving}, which is no longer set up: answered by words alone until"
        return Chosen(None, wanted, wanted, (f"{gone} `afresh reindex` has made it anew",))
    note = f"{wanted.model} is set, but {serving} answers: run `afresh reindex`"
    return Chosen(acting, acting, wanted, (note,))
