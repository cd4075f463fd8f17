"""The documentation of Harbor, a job queue that does not exist, rendered like a generator's output."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template
from types import MappingProxyType

ROBOTS = "User-agent: *\nDisallow: /private/\n\nSitemap: {url}sitemap.xml\n"
UNLISTED = frozenset({"/private/runbook/"})  # linked from other pages, but kept out of the sitemap
ORPHAN = "/guide/migrating-from-1x/"  # in the sitemap, but linked from nowhere


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of the navigation."""

    section: str
    path: str
    label: str


@cache
def pages() -> Mapping[str, str]:
    """Every page of the site by its path, as complete HTML."""
    folder = files("afresh.testing") / "harbor"
    template = Template((folder / "_template.html").read_text("utf-8"))
    entries = _navigation((folder / "_nav.txt").read_text("utf-8"))
    fragments = dict(sorted(_fragments(folder, "/")))
    return MappingProxyType(
        {path: _render(template, entries, path, body) for path, body in fragments.items()}
    )


def _fragments(folder: Traversable, base: str) -> list[tuple[str, str]]:
    """The articles below a folder: `guide/retries.html` stands at /guide/retries/."""
    found = []
    for each in folder.iterdir():
        name = each.name.removesuffix(".html")
        if each.is_dir():
            found += _fragments(each, f"{base}{name}/")
        elif each.name.endswith(".html") and not name.startswith("_"):
            found.append((base if name == "index" else f"{base}{name}/", each.read_text("utf-8")))
    return found


def _navigation(text: str) -> list[_Entry]:
    entries, section = [], ""
    for line in text.splitlines():
        if line.startswith(" "):
            path, label = line.split(maxsplit=1)
            entries.append(_Entry(section, path, label))
        elif line:
            section = line
    return entries


def _render(template: Template, entries: list[_Entry], path: str, body: str) -> str:
    title = re.sub(r"<[^>]+>", "", _first(r"<h1[^>]*>(.*?)</h1>", body))
    return template.substitute(
        title=title,
        description=re.sub(r"<[^>]+>|\s+", " ", _first(r"<p>(.*?)</p>", body)).strip()[:150].replace('"', ""),
        path=path,
        section=next((each.section for each in entries if each.path == path), "Harbor"),
        sidebar=_sidebar(entries, path),
        contents=_contents(body),
        body=_with_anchors(body),
        neighbours=_neighbours(entries, path),
    )


def _first(pattern: str, body: str) -> str:
    found = re.search(pattern, body, re.DOTALL)
    return found[1] if found else "Harbor"


def _sidebar(entries: list[_Entry], path: str) -> str:
    lines: list[str] = []
    for number, each in enumerate(entries):
        if number == 0 or entries[number - 1].section != each.section:
            lines.append(f'<li class="nav-section"><span>{each.section}</span></li>')
        active = ' class="nav-link active" aria-current="page"' if each.path == path else ' class="nav-link"'
        lines.append(f'<li><a{active} href="{each.path}">{each.label}</a></li>')
    return "\n".join(lines)


def _contents(body: str) -> str:
    headings = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', body)
    return "\n".join(f'<li><a href="#{anchor}">{text}</a></li>' for anchor, text in headings)


def _with_anchors(body: str) -> str:
    link = r'<h\1 id="\2">\3<a class="headerlink" href="#\2" title="Permanent link">¶</a></h\1>'
    return re.sub(r'<h([23]) id="([^"]+)">(.*?)</h\1>', link, body)


def _neighbours(entries: list[_Entry], path: str) -> str:
    paths = [each.path for each in entries]
    if path not in paths:
        return ""
    here = paths.index(path)
    before, after = entries[max(here - 1, 0) : here], entries[here + 1 : here + 2]
    links = [f'<a class="prev" href="{each.path}">← {each.label}</a>' for each in before]
    links += [f'<a class="next" href="{each.path}">{each.label} →</a>' for each in after]
    return "\n".join(links)
