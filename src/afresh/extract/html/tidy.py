"""Markup of many generators brought to the few forms that convert well: code, callouts, tables."""

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from afresh.extract.html.noise import detach

CALLOUTS = ", ".join((
    ".admonition", ".theme-admonition", ".markdown-alert", ".callout", ".starlight-aside", ".alert",
    "div.note", "div.warning", "div.tip", "div.caution", "div.important", "div.danger", "div.hint",
    "div.info", ".admonitionblock",
))  # fmt: skip
CALLOUT_TITLES = ", ".join((
    ".admonition-title", ".markdown-alert-title", "[class*=admonitionHeading]", ".callout-title",
    ".starlight-aside__title", "h3.title", ".alert-heading", "td.icon",
))  # fmt: skip
KINDS = (
    "note", "warning", "tip", "caution", "important", "danger", "hint", "info", "attention", "error",
    "seealso",
)  # fmt: skip
FEW_CALLOUTS = {
    "sphinx": ".admonition",
    "docbook": "div.note, div.warning, div.tip, div.caution, div.important",
}

_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language-|lang-|highlight-source-|highlight-(?!source)|brush:\s*|sourceCode\s+)"
    r"([A-Za-z0-9+#_.-]+)"
)
_ALIASES = {
    "python3": "python", "py": "python", "py3": "python", "ipython3": "python", "pycon3": "pycon",
    "js": "javascript", "shell-session": "console", "c++": "cpp", "rb": "ruby", "yml": "yaml",
    "plaintext": "", "none": "", "text": "", "default": "", "plain": "", "txt": "", "notranslate": "",
    "nohighlight": "", "undefined": "",
}  # fmt: skip
_WRAPPERS_UP = 3


def tidy(tree: LexborHTMLParser, main: LexborNode, generator: str) -> None:
    """Bring code blocks, callouts and layout tables of the content to plain forms, in place."""
    _name_code_languages(main)
    few = next((selector for name, selector in FEW_CALLOUTS.items() if generator.startswith(name)), None)
    for node in _distinct(main.css(few or CALLOUTS)):
        _quote(tree, node)
    for table in reversed(main.css("table")):
        _flatten_table(tree, table)
    for node in main.css("code code, code em, kbd kbd"):
        node.unwrap()
    if few is None:
        _free_headings(main)
        main.unwrap_tags(["font", "center"])
    for contents in reversed(main.css("dl.toc")):
        _list_terms(tree, contents)
    main.unwrap_tags(["span"])


def _distinct(nodes: list[LexborNode]) -> list[LexborNode]:
    """The nodes without repeats: an element that fits two selectors of a list comes twice."""
    return list({node.mem_id: node for node in nodes}.values())


def code_language(names: str) -> str | None:
    """The language that class names tell, in the word that fences use; "" for explicitly none."""
    found = _LANGUAGE.search(names)
    if found is None:
        return None
    name = found[1].rstrip(";").lower()
    return _ALIASES.get(name, name)


def _name_code_languages(main: LexborNode) -> None:
    for pre in main.css("pre"):
        language = _language_of(pre)
        attributes = pre.attrs
        if language:
            attributes["class"] = f"language-{language}"
        elif "class" in attributes:
            del attributes["class"]


def _language_of(pre: LexborNode) -> str:
    code = pre.first_child
    while code is not None and code.tag != "code":
        code = code.next
    if code is not None:
        language = code_language(code.attributes.get("class") or "")
        if language is not None:
            return language
    node: LexborNode | None = pre
    for _ in range(_WRAPPERS_UP):
        if node is None:
            break
        attributes = node.attributes
        language = code_language(attributes.get("class") or "")
        if language is None and attributes.get("data-lang"):
            language = str(attributes["data-lang"]).lower()
        if language is not None:
            return language
        node = node.parent
    return ""


def _free_headings(main: LexborNode) -> None:
    """Take sections out of the list items that some generators put them in."""
    lists: dict[int, LexborNode] = {}
    for heading in main.css("li > h2, li > h3, li > section > h2, li > section > h3, li > section > h4"):
        item = heading.parent
        if item is not None and item.tag != "li":
            item = item.parent
        if item is not None and item.parent is not None:
            lists[item.parent.mem_id] = item.parent
    for holder in lists.values():
        for item in list(holder.iter()):
            item.unwrap()
        holder.unwrap()


def _quote(tree: LexborHTMLParser, node: LexborNode) -> None:
    """Wrap a callout into a block quote that starts with its title in bold."""
    names = (node.attributes.get("class") or "").lower()
    title = node.css_first(CALLOUT_TITLES)
    words = title.text().strip() if title is not None else _kind(names)
    if title is not None:
        detach(title)
    quote = tree.create_node("blockquote")
    node.insert_before(quote)
    placed = node.prev
    if placed is None:
        return
    if words:
        strong = tree.create_node("strong")
        strong.insert_child(words)
        paragraph = tree.create_node("p")
        paragraph.insert_child(strong)
        placed.insert_child(paragraph)
    placed.insert_child(node, move=True)


def _kind(names: str) -> str:
    return next((kind.capitalize() for kind in KINDS if kind in names.replace("alert-", "")), "")


def _list_terms(tree: LexborHTMLParser, contents: LexborNode) -> None:
    """Replace a table of contents that is written as terms by a list, deeper ones within their item."""
    contents.insert_before(tree.create_node("ul"))
    placed = contents.prev
    if placed is None:
        return
    for part in list(contents.iter()):
        if part.tag == "dt" or placed.last_child is None:
            placed.insert_child(tree.create_node("li"))
        item = placed.last_child
        for child in list(part.iter(include_text=True)):
            if item is not None:
                item.insert_child(child, move=True)
    detach(contents)


def _flatten_table(tree: LexborHTMLParser, table: LexborNode) -> None:
    """Replace a table that is none: layout by its content, a single column by a list."""
    if _is_layout(table):
        _refill(tree, table, "div", "div")
    elif _is_one_column(table):
        _refill(tree, table, "ul", "li")


def _refill(tree: LexborHTMLParser, table: LexborNode, outer: str, inner: str) -> None:
    """Put the cells of a table into other elements, in its place."""
    table.insert_before(tree.create_node(outer))
    placed = table.prev
    if placed is None:
        return
    for cell in [cell for row in _rows(table) for cell in row.iter() if cell.tag in ("td", "th")]:
        placed.insert_child(tree.create_node(inner))
        target = placed.last_child
        for child in list(cell.iter(include_text=True)):
            if target is not None:
                target.insert_child(child, move=True)
    detach(table)


def _rows(table: LexborNode) -> list[LexborNode]:
    rows: list[LexborNode] = []
    for part in table.iter():
        rows += [part] if part.tag == "tr" else [row for row in part.iter() if row.tag == "tr"]
    return rows


def _is_layout(table: LexborNode) -> bool:
    attributes = table.attributes
    names = attributes.get("class") or ""
    if "highlighttable" in names or "rouge-table" in names or attributes.get("role") == "presentation":
        return True
    # The table itself fits "table" too, and a selector that names "td" may mean a cell around it.
    if len(table.css("table")) > 1 or table.css_first("h1, h2, h3, pre:only-child") is not None:
        return True
    return table.css_first("tr + tr, th") is None and len(table.css("tr")) == 1


def _is_one_column(table: LexborNode) -> bool:
    """Whether no row has a second cell, and some cell holds more than one paragraph."""
    return table.css_first("tr > * + *") is None and table.css_first("td > p + p") is not None
