"""Jupyter notebooks: text, code in the language of the kernel, short outputs, no pictures."""

import json
from typing import Any

import pytest
from tests.extract.files import read

from afresh.errors import ExtractError

PICTURE = "iVBORw0KGgo" * 20


def notebook(*cells: dict[str, Any], **metadata: Any) -> bytes:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}).encode()


def code(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source.splitlines(keepends=True), "outputs": list(outputs)}


def text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": source}


def test_cells_become_text_and_code() -> None:
    data = notebook(
        text(f"# Jars\n\n![a jar](data:image/png;base64,{PICTURE}) [lid](https://lid.example/a)"),
        code(
            "x = 1\nprint(x)",
            {"output_type": "stream", "text": ["1\n", "\x1b[31m2\x1b[0m\n"]},
            {"output_type": "display_data", "data": {"image/png": PICTURE, "text/plain": "<Figure>"}},
            {"output_type": "error", "ename": "KeyError", "evalue": "'lid'", "traceback": ["long"]},
        ),
        code(""),
        code("```", {"output_type": "stream", "text": "y\n" * 500}),
        language_info={"name": "Julia"},
    )
    document = read(data, "jars.ipynb", "text/plain")
    assert document.markdown == (
        "# Jars\n\na jar [lid](https://lid.example/a)\n\n```julia\nx = 1\nprint(x)\n```\n\n```\n1\n2\n```\n\n"
        "```\nKeyError: 'lid'\n```\n\n````julia\n```\n````\n\n```\n" + "y\n" * 20 + "…\n```"
    )
    assert document.title == "Jars"
    assert [link.url for link in document.links] == ["https://lid.example/a"]


def test_an_old_notebook_keeps_its_cells_in_worksheets() -> None:
    cells = [{"cell_type": "heading", "level": 2, "source": "Jars"}, {"cell_type": "code", "input": "x", "outputs": []}]
    data = json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}).encode()
    assert read(data, "old.ipynb").markdown == "## Jars\n\n```python\nx\n```"


def test_a_notebook_sent_as_json_is_a_notebook() -> None:
    assert read(notebook(text("# Jars")), "download", "application/json").markdown == "# Jars"


@pytest.mark.parametrize("data", [b"{}", b"[]", b"{", b'{"nbformat": 4, "cells": 3}', b"[" * 100_000])
def test_what_is_no_notebook_is_refused(data: bytes) -> None:
    with pytest.raises(ExtractError, match=r"notebook|JSON"):
        read(data, "jars.ipynb")


def test_cells_of_any_shape_do_no_harm() -> None:
    odd: list[Any] = [None, 3, "x", [], {"cell_type": "code", "source": 3, "outputs": 3}, code("x", {"data": []})]
    odd += [code("y", {"data": {"text/plain": 3}}), {"cell_type": "heading", "level": "x", "source": ["a", 3]}]
    data = json.dumps({"nbformat": 4, "metadata": [], "cells": odd}).encode()
    assert read(data, "odd.ipynb").markdown == "```python\nx\n```\n\n```python\ny\n```\n\n# a"
