"""Named SQL: every statement is text in `queries/*.sql` under a line `-- name`.

`queries/reads.sql` is for every dialect, `queries/reads.sqlite.sql` for one of them: what it has to say in
words of its own stands there, and nowhere else. `{list x}` is the members of the list parameter x,
`{rows a b}` a table with these columns that is handed over whole, `{holds x}` whether a column holds a text
in any case, `{for update}` and `{for update skip locked}` say who waits for whom where several may write at
once. `{of sources}` is whether a page is one of them: the statement NAME finds those of some sources or all
in the order of their numbers, until there are enough, and NAME_of_one those of one, by its index. `{open
rows}` are those of the queue with their pages: NAME goes through the queue, NAME_of_few through the pages.
"""

import re
from functools import cache
from importlib.resources import files

from afresh.model.filters import Sources

_FORMS = {  # by what ends the name of the statement
    "{of sources}": {
        "": "(:everywhere = 1 or +p.source_id in {list sources})",
        "_of_one": "p.source_id = :source",
    },
    "{open rows}": {
        "": "page_crawls c cross join pages p",
        "_of_few": "pages p cross join page_crawls c",
    },
}
_NAME = re.compile(r"^-- ([a-z_]+)$", re.MULTILINE)


@cache
def queries(dialect: str) -> dict[str, str]:
    """All named statements of a dialect; a name is unique among the shared ones and its own."""
    found: dict[str, str] = {}
    for file in sorted(files("afresh.store").joinpath("queries").iterdir(), key=lambda f: f.name):
        kind = file.name.split(".")[1:]
        if kind not in (["sql"], [dialect, "sql"]):
            continue
        parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"two statements are called {name}")
            found[name] = text.strip().rstrip(";")
    for name, text in list(found.items()):
        for token, forms in _FORMS.items():
            if token in text:
                found |= {name + end: text.replace(token, words) for end, words in forms.items()}
    return found


def of_sources(name: str, sources: Sources) -> tuple[str, dict[str, object]]:
    """Which form of a statement with `{of sources}` is meant, and what it is told of them."""
    if sources is not None and len(sources) == 1:
        return f"{name}_of_one", {"source": sources[0]}
    return name, among_sources(sources)


def migrations(dialect: str) -> list[tuple[int, str]]:
    """The migrations in order, each with what the dialect adds to it."""
    folder = files("afresh.store").joinpath("migrations")
    shared = sorted(f.name for f in folder.iterdir() if re.fullmatch(r"\d{4}_[a-z_]+\.sql", f.name))
    steps = []
    for name in shared:
        text = folder.joinpath(name).read_text(encoding="utf-8")
        own = folder.joinpath(name.replace(".sql", f".{dialect}.sql"))
        if own.is_file():
            text += "\n" + own.read_text(encoding="utf-8").replace("{", "{{").replace("}", "}}")
        steps.append((int(name[:4]), text))
    return steps


def among_sources(sources: Sources) -> dict[str, object]:
    """Return the parameters of a statement that is asked about some sources, or all."""
    return {"everywhere": int(sources is None), "sources": list(sources or ())}
