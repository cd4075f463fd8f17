"""JSON on a terminal: nothing that a terminal or a reader's eye could be fooled by."""

import io
import json

from afresh.present.formats import write


def test_unseen_characters_are_escaped_and_come_back() -> None:
    """C1 controls and bidi marks are legal in JSON text and still move a terminal."""
    text = "a\x9b31mb\u202ec\u2066d\x7f日本é"
    out = io.StringIO()
    write({"title": text}, out)
    assert json.loads(out.getvalue()) == {"title": text}
    assert not set("\x9b\u202e\u2066\x7f") & set(out.getvalue())
    assert "日本é" in out.getvalue()
