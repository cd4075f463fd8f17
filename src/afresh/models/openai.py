"""The form of OpenAI's embeddings, which many servers speak."""

from collections.abc import Mapping, Sequence
from typing import Any


class OpenAIForm:
    """Fulfils `Form` for any endpoint that is compatible with OpenAI's."""

    most: int = 2048

    def __init__(self, base_url: str, model: str, api_key: str | None, dimensions: int | None) -> None:
        self.url = f"{base_url}/embeddings"
        self.headers: Mapping[str, str] = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._fixed: dict[str, object] = {"model": model, "encoding_format": "float"}
        if dimensions is not None:
            self._fixed["dimensions"] = dimensions

    def body(self, texts: Sequence[str], *, query: bool) -> object:
        """The request for these texts; questions are asked like any text."""
        return {**self._fixed, "input": list(texts)}

    def rows(self, answer: Any) -> list[Any]:
        """The vectors by their `index`; a server that numbers none keeps the order by itself."""
        found = answer["data"]
        if all("index" not in each for each in found):
            return [each["embedding"] for each in found]
        numbered = {each["index"]: each["embedding"] for each in found}
        return [numbered[at] for at in range(len(found))]
