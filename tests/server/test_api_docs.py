"""docs/reference/rest.md says what the code does."""

from scripts.reference import BLOCKS, DOCS, renewed


def test_C1_the_table_of_routes_is_that_of_the_code() -> None:
    text = (DOCS / "reference/rest.md").read_text("utf-8")
    assert renewed(text, BLOCKS["reference/rest.md"]()) == text, "run python scripts/reference.py"
    for route in ("/api/v1/sources", "/api/v1/pages/{number}", "/api/v1/links", "/api/v1/runs/{number}/events"):
        assert f"`{route}`" in text
