"""The forms in which a model can be asked to answer with scores, strictest first."""

from collections.abc import Mapping, Sequence
from typing import Any


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT = {"type": "string"}
_KEYWORD = _object(keyword=_TEXT, score={"type": "number"})
SCHEMA = _object(links=_list(_object(url=_TEXT, keywords=_list(_KEYWORD), comment=_TEXT)))

FORMS: Sequence[Mapping[str, object]] = (
    {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "link_scores", "strict": True, "schema": SCHEMA},
        }
    },
    {"response_format": {"type": "json_object"}},
    {},
)
