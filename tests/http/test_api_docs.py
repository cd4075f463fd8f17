"""docs/api.md says what the code does."""

from afresh.server.reference import DOCS, filled


def test_C1_the_table_of_routes_is_that_of_the_code() -> None:
    text = DOCS.read_text("utf-8")
    assert filled(text) == text, "run python -m afresh.server.reference"
    for route in (
        "/api/v1/sources",
        "/api/v1/pages/{number}",
        "/api/v1/links",
        "/api/v1/runs/{number}/events",
    ):
        assert f"`{route}`" in text
