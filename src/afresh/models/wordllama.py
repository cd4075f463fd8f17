"""The fast built-in model: the weights of the wordllama package, read without importing the package."""

import hashlib
import os
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from afresh.errors import EmbedderUnavailable
from afresh.models.local import prose, unit_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from afresh.ports import Matrix

DIMENSION = 256
POOLING = 1  # version of the conversion from text to vector: raise it when a vector would change
INSTALL = "pip install wordllama==0.4.0.post1"
_INSTEAD = "or set embedding.provider: none for keyword search only"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_DIGEST = "e492dc7b14cadcbdb5cb6d3808af733a"
_MAX_TOKENS = 4_096
_MAX_CACHED_WORDS = 60_000
_DAMPING = 0.75  # repeated tokens count more, but less than proportionally
# A text begins with its subject: the first token counts three times, later ones less.
_FIRST, _FADING = 2.0, 48.0


class WordllamaModel:
    """Embeds each text as the weighted sum of its tokens' vectors, scaled to length 1."""

    def __init__(self) -> None:
        import numpy as np

        self._tokenizer, self._vectors = load_files()
        self._places = 1.0 + _FIRST * np.exp(-np.arange(_MAX_TOKENS) / _FADING)
        self._known: dict[str, list[int]] = {}
        self._lock = threading.Lock()

    def rows(self, texts: Sequence[str], *, query: bool = False) -> "Matrix":
        """Return one vector of length 1 for each text; queries are treated like any text."""
        import numpy as np

        sums = np.zeros((len(texts), DIMENSION), np.float32)
        for row, text in zip(sums, texts, strict=True):
            tokens, which = np.unique(self.tokens(prose(text)), return_inverse=True)
            if len(tokens):
                counts = np.bincount(which, self._places[: len(which)]) ** _DAMPING
                row[:] = counts.astype(np.float32) @ self._vectors.take(tokens, axis=0)
        return unit_rows(sums)

    def tokens(self, text: str) -> list[int]:
        """Return the token ids of a text whose words are separated by single spaces.

        No token of this vocabulary contains a space, so each word is tokenised once and cached.
        """
        words = text.split(" ") if text else []
        with self._lock:
            if len(self._known) > _MAX_CACHED_WORDS:
                self._known.clear()
            new = list({word for word in words if word not in self._known})
            found = self._tokenizer.encode_batch_fast(new, add_special_tokens=False)
            self._known.update((word, each.ids) for word, each in zip(new, found, strict=True))
            return [token for word in words for token in self._known[word]][:_MAX_TOKENS]


def load_files() -> tuple["Tokenizer", "Matrix"]:
    """Return the tokenizer and its token vectors from the package files, without importing the package."""
    # Without this, the library starts threads and warns about forks.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    place = folder()
    try:
        import numpy as np
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(place / _TOKENIZER))
        weights = load_file(place / _WEIGHTS)["embedding.weight"]
    except Exception as error:
        raise EmbedderUnavailable(f"the built-in model cannot be read: {INSTALL} again, {_INSTEAD}") from error
    sample = weights[::64].tobytes()  # hashing everything would take 25 ms
    if hashlib.sha256((place / _TOKENIZER).read_bytes() + sample).hexdigest()[:32] != _DIGEST:
        raise EmbedderUnavailable(f"the built-in model differs from the tested version: {INSTALL}, {_INSTEAD}")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, weights.astype(np.float32)


def folder() -> Path:
    """Return the folder of the package; raise EmbedderUnavailable if it is not installed."""
    spec = find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise EmbedderUnavailable(f"the built-in model is not installed: {INSTALL}, {_INSTEAD}")
    return Path(spec.origin).parent
