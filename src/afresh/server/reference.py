"""`python -m afresh.server.reference` writes the table of routes in docs/api.md."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from afresh.app import utc_now
from afresh.config import Config
from afresh.kb import KnowledgeBase
from afresh.server.app import make_app
from afresh.services.context import Context

DOCS = Path(__file__).resolve().parents[3] / "docs" / "api.md"
BEGIN = "<!-- routes, written from the code by python -m afresh.server.reference -->"
END = "<!-- end of what is written from the code -->"


def table() -> str:
    """Every route on a line: what it is, what it does, and what it takes."""
    unopened = KnowledgeBase(Context(store=None, tools=None, models=None, clock=utc_now))  # type: ignore[arg-type]
    app = make_app(unopened, Config(), works=False)  # nothing is asked
    lines = ["| | route | what it does | takes |", "|---|---|---|---|", *_rows(app.openapi())]
    return "\n".join(lines)


def _rows(document: Mapping[str, Any]) -> Iterator[str]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            told = " ".join(operation["description"].split()).replace("|", "\\|")
            yield f"| {method.upper()} | `{path}` | {told} | {_taken(document, operation)} |"


def _taken(document: Mapping[str, Any], operation: Mapping[str, Any]) -> str:
    query = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = media.get("schema", {}).get("$ref", "").rpartition("/")[2]
    body = document["components"]["schemas"].get(name, {}).get("properties", {})
    parts = [f"`?{each}`" for each in query] + [f"`{each}`" for each in body]
    return " ".join(parts)


def filled(text: str) -> str:
    """The page with its table as the code has it."""
    return re.sub(
        f"{re.escape(BEGIN)}.*?{re.escape(END)}",
        lambda _: f"{BEGIN}\n\n{table()}\n\n{END}",
        text,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    DOCS.write_text(filled(DOCS.read_text("utf-8")), "utf-8")
