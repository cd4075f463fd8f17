"""The documentation of fastapi in four of its versions, as plain HTML pages of a TinySite.

They are Markdown from its history (../shared/data/docs-refresh), below an index page that links to all.
"""

import re
import tarfile
from pathlib import Path

from pyromark import html as rendered
from tests.e2e.sites import page

from afresh.testing import TinySite

Tree = dict[str, str]  # file to its page


def versions_in(shared: Path) -> dict[str, Tree]:
    """The pages of each version, by their file."""
    trees: dict[str, Tree] = {}
    with tarfile.open(shared / "data" / "docs-refresh" / "fastapi.tar.xz") as archive:
        for member in archive:
            if (file := archive.extractfile(member)) and member.name.endswith(".md"):
                version, _, name = member.name.removeprefix("./").partition("/")
                trees.setdefault(version, {})[name] = _html(name, file.read().decode())
    return trees


def _html(name: str, markdown: str) -> str:
    body = re.sub(r'(href="(?!https?:)[^"#]*)\.md(?=["#])', r"\1.html", rendered(markdown))
    return f"<!doctype html><html lang=en><title>{name}</title><body><main>{body}</main></body></html>"


def at(name: str) -> str:
    """Where a file is served."""
    return f"/docs/{name.removesuffix('.md')}.html"


def serve(site: TinySite, tree: Tree) -> None:
    """Let the site show one version, and nothing else."""
    for path in site.paths:
        if path.startswith("/docs/") and path not in map(at, tree):
            site.delete(path)
    for name, text in tree.items():
        if at(name) not in site.paths or site.read(at(name)) != text:
            site.put(at(name), text)
    index = page("All pages", [at(name) for name in sorted(tree)])
    if "/" not in site.paths or site.read("/") != index:
        site.put("/", index)
