"""Choose the extractor for a body: by its media type, else by its file name, else by its bytes."""

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

from afresh.dataclass import replace
from afresh.errors import ExtractError
from afresh.model.fetch import Body, Document
from afresh.plugins import EXTRACTORS, installed_plugins, load_plugin
from afresh.text.normalize import sketch_of
from afresh.urls.scope import WHOLE_SITE

if TYPE_CHECKING:
    from afresh.ports import Extractor

_LANGUAGES = {ending: name for name, endings in {
    # languages that are divided into symbols, see code_languages.py
    "python": (".py", ".pyi", ".pyw", ".pyx", ".pxd"), "javascript": (".js", ".mjs", ".cjs", ".jsx"),
    "typescript": (".ts", ".tsx", ".mts", ".cts"), "go": (".go",), "rust": (".rs",), "csharp": (".cs",),
    "java": (".java", ".groovy", ".gradle"), "kotlin": (".kt", ".kts"), "swift": (".swift",),
    "scala": (".scala", ".sc"), "dart": (".dart",), "php": (".php",), "lua": (".lua",), "r": (".r",),
    "cpp": (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".inl", ".ipp", ".cu", ".ino"),
    "ruby": (".rb", ".rake", ".gemspec", "rakefile", "gemfile"), "elixir": (".ex", ".exs"),
    "bash": (".sh", ".bash", ".zsh", ".ksh", ".bats"), "perl": (".pl", ".pm"),
    # languages that are not divided
    "sql": (".sql",), "toml": (".toml",), "ini": (".ini", ".cfg", ".conf", ".properties"),
    "css": (".css", ".scss"), "makefile": ("makefile", ".mk"), "dockerfile": ("dockerfile",),
    "protobuf": (".proto",), "graphql": (".graphql",), "hcl": (".tf",), "haskell": (".hs",),
    "clojure": (".clj",), "ocaml": (".ml",), "erlang": (".erl",), "zig": (".zig",), "julia": (".jl",),
    "powershell": (".ps1",), "batch": (".bat", ".cmd"), "cmake": (".cmake", "cmakelists.txt"),
    "diff": (".diff", ".patch"),
}.items() for ending in endings}  # fmt: skip
SNIFFED_BYTES = 1_024


def language_of_name(name: str) -> str:
    """Return the code language for a file name, as Markdown fences spell it; "" if the file is not code."""
    lower = name.lower()
    return _LANGUAGES.get(lower) or _LANGUAGES.get("." + lower.rpartition(".")[2], "")


class Format(NamedTuple):
    name: str  # as shown in error messages
    reader: "str | Callable[[], Extractor]"  # built in: `module:function` in `afresh.extract`, imported on first use
    media: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # endings such as `.md`, or whole names such as `makefile`, in lower case
    magic: bytes = b""  # the first bytes of a binary format; empty for text formats
    member: str = ""  # a folder or file in a ZIP file that identifies the format


_ZIP = b"PK\x03\x04"
_PDF = b"%PDF-"  # searched for in the first bytes, because some programs put a line before it
_OFFICE = "application/vnd.openxmlformats-officedocument"
_HTML = Format("HTML", "html.html:extract_html", ("text/html", "application/xhtml+xml"), (".html", ".htm", ".xhtml"))
_TEXT = Format("text", "markdown:extract_text", (), (".txt", ".text"))

# The order matters only for ZIP files of unknown type: the first format whose member exists is chosen.
FORMATS = (
    _HTML,
    Format("Markdown", "markdown:extract_markdown", ("text/markdown", "text/x-markdown"),
           (".md", ".markdown", "llms.txt", WHOLE_SITE.strip("/"))),
    Format("MDX", "markdown:extract_mdx", ("text/mdx",), (".mdx",)),
    Format("reStructuredText", "markup.rst:extract_rst", ("text/x-rst", "text/prs.fallenstein.rst"),
           (".rst", ".rest")),
    Format("AsciiDoc", "markup.asciidoc:extract_asciidoc", ("text/asciidoc",), (".adoc", ".asciidoc", ".asc")),
    _TEXT,
    Format("PDF", "office.pdf:extract_pdf", ("application/pdf", "application/x-pdf"), (".pdf",), _PDF),
    Format("DOCX", "office.docx:extract_docx",
           (f"{_OFFICE}.wordprocessingml.document", "application/vnd.ms-word.document.macroenabled.12"),
           (".docx", ".docm", ".dotx"), _ZIP, "word/"),
    Format("PPTX", "office.pptx:extract_pptx",
           (f"{_OFFICE}.presentationml.presentation", f"{_OFFICE}.presentationml.slideshow"),
           (".pptx", ".pptm", ".ppsx"), _ZIP, "ppt/"),
    Format("XLSX", "office.xlsx:extract_xlsx",
           (f"{_OFFICE}.spreadsheetml.sheet", "application/vnd.ms-excel.sheet.macroenabled.12"),
           (".xlsx", ".xlsm"), _ZIP, "xl/"),
    Format("EPUB", "office.epub:extract_epub", ("application/epub+zip",), (".epub",), _ZIP,
           "META-INF/container.xml"),
    Format("notebook", "data_files:extract_notebook", ("application/x-ipynb+json",), (".ipynb",)),
    Format("JSON", "data_files:extract_json", ("application/json", "text/json"), (".json", ".webmanifest")),
    Format("YAML", "data_files:extract_yaml",
           ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/vnd.yaml"),
           (".yaml", ".yml")),
    Format("code", "source_code:extract_code", (), tuple(_LANGUAGES)),
)  # fmt: skip

_BY_MEDIA = {media: each for each in FORMATS for media in each.media}
_BY_ENDING = {name: each for each in FORMATS for name in each.names}

# Media types that servers use for unknown files.
_VAGUE_TYPES = frozenset((
    "", "application/octet-stream", "application/unknown", "application/x-zip-compressed",
    "application/zip", "binary/octet-stream", "text/plain",
))  # fmt: skip

_MARKUP = re.compile(
    rb"\s*+(?:<\?xml[^>]*+>\s*+)?+(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|title|meta|script|div|h1|p|a|table)"
    rb"(?=[\s>/])",
    re.IGNORECASE | re.DOTALL,
)
_SIGNATURES = (
    (_PDF, "PDF"), (b"\x89PNG", "a PNG image"), (b"GIF8", "a GIF image"), (b"\xff\xd8\xff", "a JPEG image"),
    (_ZIP, "a ZIP archive or office file"), (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or encrypted office file"), (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "a program"), (b"RIFF", "a media file"), (b"OggS", "a media file"), (b"ID3", "a media file"),
)  # fmt: skip
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONTROL = bytes(set(range(0x20)) - {0x09, 0x0A, 0x0C, 0x0D, 0x1B})


def extract(body: Body, *, hidden_links: bool = True) -> Document:
    """Return a body's document (`hidden_links`: also HTML links outside of anchors); raise ExtractError if it fails."""
    chosen = choose(body)
    _refuse_another(chosen, body)
    read = _reader(chosen.reader)
    document = read(body) if hidden_links or chosen is not _HTML else read(body, with_hidden_links=False)
    return replace(document, sketch=sketch_of(document.markdown, body.url))


def extract_visible(body: Body) -> Document:
    return extract(body, hidden_links=False)


def choose(body: Body) -> Format:
    media = body.media_type
    _, plus, family = media.rpartition("+")  # as in `application/problem+json`
    plain = f"application/{family}" if plus and family in ("json", "yaml") else ""
    declared = _BY_MEDIA.get(media) or _BY_MEDIA.get(plain)
    return declared or _by_name(body.url) or _by_plugin(body) or _by_look(body, media)


def _by_look(body: Body, media: str) -> Format:
    head = body.data[:SNIFFED_BYTES]
    if head.startswith(_PDF):
        return _BY_ENDING[".pdf"]
    if head.startswith(_ZIP):
        from afresh.extract.office.package import ZipReader

        names = ZipReader(body.data).names
        for each in FORMATS:
            if each.member and any(name.startswith(each.member) for name in names):
                return each
    binary = _binary(head)
    if binary is not None:
        raise ExtractError(f"unsupported binary format ({media if media not in _VAGUE_TYPES else binary})")
    if media not in _VAGUE_TYPES:
        raise ExtractError(f"media type {media} is not supported")
    is_page = media != "text/plain" and _MARKUP.match(head.removeprefix(b"\xef\xbb\xbf"))
    return _HTML if is_page else _TEXT


def _by_name(url: str) -> Format | None:
    name = url.partition("?")[0].partition("#")[0].rpartition("/")[2].lower()
    _, *endings = name.rsplit(".", 2)
    for ending in (name, *("." + ".".join(endings[at:]) for at in range(len(endings)))):
        if ending in _BY_ENDING:
            return _BY_ENDING[ending]
    return None


def _by_plugin(body: Body) -> Format | None:
    name = body.url.partition("?")[0].rpartition("/")[2].lower()
    for each in plugin_formats():
        if body.media_type in each.media or name in each.names or name.endswith(tuple(each.names) or " "):
            return each
    return None


@cache
def plugin_formats() -> tuple[Format, ...]:
    """Return the formats of installed plug-ins; raise PluginError if one cannot be loaded."""
    loaded = (load_plugin(EXTRACTORS, name, Format) for name in installed_plugins(EXTRACTORS))
    return tuple(each for each in loaded if each is not None)


@cache
def _reader(where: "str | Callable[[], Extractor]") -> Callable[..., Document]:
    if not isinstance(where, str):
        return where().extract
    module, _, name = where.partition(":")
    return cast("Callable[..., Document]", getattr(import_module(f"afresh.extract.{module}"), name))


def _refuse_another(chosen: Format, body: Body) -> None:
    head = body.data[:SNIFFED_BYTES]
    magic = chosen.magic
    if magic and magic in (head if magic == _PDF else head[: len(magic)]):
        return
    binary = _binary(head)
    name = body.url.partition("?")[0].rpartition("/")[2]
    called = f"sent as {body.media_type}" if body.media_type else f"called {name[:100]}"
    if magic:
        raise ExtractError(f"{called}, but the body is {binary or 'text'}, not {chosen.name}")
    if binary is not None:
        raise ExtractError(f"{called}, but the body is {binary}")


def _binary(head: bytes) -> str | None:
    for signature, name in _SIGNATURES:
        if head.startswith(signature):
            return name
    if head.startswith(_WIDE_MARKS):
        return None
    odd = len(head) - len(head.translate(None, _CONTROL))
    return "binary data" if odd * 10 > len(head) else None
