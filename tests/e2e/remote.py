"""An embedding API for tests: the settings that lead to it, and one that refuses what it dislikes."""

from collections import Counter

from tests.fakes.embedding_server import EmbeddingServer, Status

BATCH = 4  # texts in a request


def flags_for(server: EmbeddingServer, **more: object) -> dict[str, object]:
    """Settings under which vectors come from a server on loopback."""
    return {
        "embedding.provider": "openai",
        "embedding.model": "told",
        "embedding.base_url": server.base_url,
        "embedding.batch_size": BATCH,
        **{f"embedding.{name}": value for name, value in more.items()},
    }


def paid(server: EmbeddingServer) -> Counter[str]:
    """How often each text was sent."""
    return Counter(text for asked in server.asked for text in asked.texts)


class PickyServer(EmbeddingServer):
    """Refuses requests that hold a text with some word."""

    dislikes = "\0"

    def _too_large(self, texts: tuple[str, ...]) -> Status | None:
        disliked = any(self.dislikes in text for text in texts)
        return Status(400) if disliked else super()._too_large(texts)
