"""Markdown to a document: kept as it is written, front matter read, links resolved."""

import re
from collections.abc import Iterator

from afresh.extract.decode import decode
from afresh.extract.html.head import LONGEST_TITLE, foreign_canonical, one_line, robot_wishes
from afresh.extract.language import language_of
from afresh.extract.links import LONGEST_TEXT, MOST_LINKS
from afresh.extract.text import first_line
from afresh.model import recipe
from afresh.model.fetch import Body, Document, Link
from afresh.text.normalize import links_hash, normalise, text_hash
from afresh.urls.files import link_target
from afresh.urls.scope import WHOLE_SITE

_FRONT_MATTER = re.compile(r"---\n(.*?\n)?(?:---|\.\.\.)\n", re.DOTALL)
_FRONT_FIELD = re.compile(
    r"^(title|lang|language|canonical|canonical_url|robots|noindex):[ \t]*(.+)$", re.MULTILINE
)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
_CODE_SPAN = re.compile(r"(?<!`)(`++)[^`\n]+\1")
# What a heading says, and what closes it: a run of blanks or of # is looked through from its start alone.
HEADING_TEXT = r"([ \t#](?=[ \t]*+#*+$)|.+?(?=(?<![ \t])[ \t]++#*+$|(?<![ \t#])#*+$))[ \t]*+#*+$"
_HEADING = re.compile(rf"^ {{0,3}}#[ \t]+{HEADING_TEXT}|^(\S[^\n]*+)\n=++$", re.MULTILINE)
_LINK = re.compile(
    r"""(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\]){0,500})\]\(\s*+<?+([^\s()<>]*+(?:\([^\s()]*+\)[^\s()<>]*+)*+)>?+"""
    r"""(?:\s*+(?<=\s)(?:"[^"]*+"|'[^']*+'|\([^()]*+\)))?+\s*+\)"""
)
_DEFINITION = re.compile(r"^ {0,3}\[([^\]\n]{1,200})\]:\s*<?([^\s<>]+)>?", re.MULTILINE)
_AUTOLINK = re.compile(r"<(https?://[^\s<>]+)>")
_MARKS = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*_`]+|[ \t]*\{:?[ \t]*[#.][^{}\n]*\}[ \t]*$")


class MarkdownExtractor:
    """Reads Markdown."""

    version = recipe.MARKDOWN

    def extract(self, body: Body) -> Document:
        """The document of a Markdown body."""
        source = normalise(decode(body.data, body.charset))
        front = _FRONT_MATTER.match(source)
        text = normalise(source[front.end() :]) if front else source
        fields = _fields(front[0]) if front else {}
        prose = without_code(text)
        links = links_in(prose, body.url)
        index, follow = robot_wishes(fields.get("robots", ""))
        index = index and fields.get("noindex", "").lower() != "true"
        named = fields.get("canonical") or fields.get("canonical_url", "")
        return Document(
            title=title_in(prose, fields.get("title", "")),
            markdown=text,
            links=links,
            language=language_of(text, fields.get("lang"), fields.get("language"), body.language),
            content_hash=text_hash(text),  # it is in normal form already
            links_hash=links_hash(links),
            index=body.index and index,
            follow=body.follow and follow and not body.url.endswith(WHOLE_SITE),  # it holds what they lead to
            foreign_canonical=foreign_canonical(named, body.url, body.url),
        )


def _fields(front: str) -> dict[str, str]:
    """What a page says of itself in front of its text."""
    return {name: value.strip().strip("\"'") for name, value in _FRONT_FIELD.findall(front)}


def without_code(text: str) -> str:
    """The text without its fenced code, in which nothing is a heading or a link."""
    return _FENCE.sub("", text)


def title_in(prose: str, told: str = "") -> str:
    """The title that a text is told to have, else its first large heading, else its first line."""
    heading = _HEADING.search(prose)
    title = told or (heading[1] or heading[2] if heading else first_line(prose))
    return _plain(title[: 20 * LONGEST_TITLE])[:LONGEST_TITLE].strip()  # markup may take most of it


def _plain(text: str) -> str:
    return one_line(_MARKS.sub(lambda found: found[1] or "", text))


def links_in(prose: str, base: str) -> tuple[Link, ...]:
    """The links of a text without fenced code, one per target, at most `MOST_LINKS`."""
    found: dict[str, Link] = {}
    for raw_url, text in _raw_links(_CODE_SPAN.sub(" ", prose)):
        target = raw_url.partition("#")[0]
        url = link_target(target, base) if target else None
        if url is not None and (url not in found or not found[url].text):
            found[url] = Link(url, _plain(text[: 20 * LONGEST_TEXT])[:LONGEST_TEXT].strip())
            if len(found) >= MOST_LINKS:
                break
    return tuple(found.values())


def _raw_links(prose: str) -> Iterator[tuple[str, str]]:
    for link in _LINK.finditer(prose):
        yield link[2], link[1]
    for definition in _DEFINITION.finditer(prose):
        yield definition[2], definition[1]
    for autolink in _AUTOLINK.finditer(prose):
        yield autolink[1], ""
