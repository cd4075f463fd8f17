"""Hidden links: what each finder finds, what it leaves alone, and that nothing a page says breaks it."""

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples

from afresh.extract import extract, extract_visible
from afresh.extract.html.hidden_links import leads_to_page
from afresh.extract.html.html import extract_html
from afresh.model.fetch import Body, Document

URL = "https://city.example/start/"
CPU_SECONDS = 3.0  # of a hostile page; far more than it takes


def read(body: str, head: str = "") -> Document:
    page = f"<head><title>T</title>{head}</head><body><main><p>Words.</p>{body}</main></body>"
    html = f"<!doctype html><html>{page}</html>"
    return extract(Body(url=URL, data=html.encode("utf-8", "surrogatepass")))


def found(body: str, head: str = "") -> dict[str, str]:
    """Targets below the site without its name, others as they are, with their texts."""
    return {link.url.removeprefix("https://city.example"): link.text for link in read(body, head).links}


def settings_json(data: Any) -> str:
    kind = 'type="application/json" data-drupal-selector="drupal-settings-json"'
    return f"<script {kind}>{json.dumps(data)}</script>"


def test_C22_drupal_settings_name_links_with_the_text_beside_them() -> None:
    data = {
        "path": {"baseUrl": "/", "pathPrefix": "", "currentPath": "/node/1"},
        "ajaxPageState": {"theme": "/themes/asu", "libraries": "core/drupal"},
        "menu": [
            {"href": "/budget", "title": "Budget &amp; taxes"},
            {"link": {"uri": "https://city.example/contact"}, "label": "Contact <b>us</b>"},
            {"Link_Text": "Minutes", "target": ["/minutes/1", "/minutes/2"]},
            {"url": "https://elsewhere.example/told", "description": "A neighbour"},
            {"url": "https://elsewhere.example/untold"},
            {"way": "/bare"},
        ],
        "views": {"ajax_path": "/views/ajax", "x": "/core/misc/a", "y": "/node/%", "z": "/node/{id}/edit"},
    }
    assert found(settings_json(data)) == {
        "/budget": "Budget & taxes",
        "/contact": "Contact us",
        "/minutes/1": "Minutes",
        "/minutes/2": "Minutes",
        "https://elsewhere.example/told": "A neighbour",
        "/bare": "",
    }


def test_C22_the_settings_of_older_drupals_are_read_too() -> None:
    data = json.dumps({"basePath": "/", "cards": [{"name": "Parks", "url": "/parks"}]}).replace("/", "\\/")
    script = f"<script type='text/javascript'><!--//\njQuery.extend(Drupal.settings, {data});\n//--></script>"
    assert found(script) == {"/parks": "Parks"}
    assert found(script.replace("}]}", "}]")) == {}


def test_C22_a_visible_link_keeps_its_text_and_nofollow_and_comes_first() -> None:
    hidden = settings_json(
        [{"url": "https://city.example/a", "title": "No"}, {"url": "/b", "title": "Lent"}, {"url": "/0", "title": "C"}]
    )
    links = read('<a rel="nofollow" href="/a">Yes</a><a href="/b"></a>', hidden).links
    assert [tuple(link) for link in links] == [
        ("https://city.example/a", "Yes", False),
        ("https://city.example/b", "Lent", True),
        ("https://city.example/0", "C", True),
    ]


def test_hydration_data_counts_where_a_field_is_named_like_a_link_and_has_words() -> None:
    data = {
        "props": {"nav": [{"title": "Guide", "href": "/guide"}, {"href": "/untold"}, {"name": "I", "image": "/i"}]},
        "page": "/docs/[[...slug]]",
        "query": {"title": "Raw", "endpointUrl": "/call"},
    }
    nuxt = [["Reactive", 1], {"title": 2, "path": 3, "other": 99}, "Nuxt page", "/nuxt"]
    head = f'<script id="__NEXT_DATA__" type="application/json">{json.dumps(data)}</script>'
    head += f'<script id="__NUXT_DATA__" type="application/json">{json.dumps(nuxt)}</script>'
    assert found("", head) == {"/guide": "Guide", "/nuxt": "Nuxt page"}


def test_json_ld_names_pages_but_no_pictures_and_no_ids() -> None:
    data = {
        "@context": "https://schema.org",
        "@graph": [
            {"@type": "Organization", "name": "Larch", "@id": f"{URL}#org", "sameAs": ["https://social.example/larch"]},
            {
                "@type": "ItemList",
                "itemListElement": [
                    {"@type": "ListItem", "name": "Parks", "item": "https://city.example/parks"},
                    {"@type": "ListItem", "item": {"@id": "https://city.example/fire", "name": "Fire"}},
                ],
            },
            {"@type": "ImageObject", "url": "https://city.example/picture"},
            {"@type": "WebPage", "url": URL, "image": "https://city.example/image"},
            {"@type": "SearchAction", "target": {"urlTemplate": "https://city.example/?q={q}"}},
        ],
    }
    head = f'<script type="application/ld+json">{json.dumps(data)}</script>'
    assert found("", head) == {"https://social.example/larch": "Larch", "/parks": "Parks", "/fire": "Fire"}


def test_the_head_names_neighbours_but_no_other_forms_of_the_page() -> None:
    head = (
        '<link rel="next" href="../two" title="Two"><link rel=prev href=/zero>'
        "<link rel=alternate hreflang=de href=/de/><link rel=amphtml href=/amp>"
        "<link rel=canonical href=/same>"
        "<link rel=stylesheet href=/s.css><link rel=icon href=/i><link rel=preload href=/p>"
    )
    assert found("", head) == {"/two": "Two", "/zero": ""}


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<div onclick=\"location.href='/a'\">To <b>A</b></div>", {"/a": "To A"}),
        ("<tr><td onClick='window.location = \"b.html\";'>B</td></tr>", {"/start/b.html": "B"}),
        ("<button onclick=\"window.open('/c', '_blank')\">C</button>", {"/c": "C"}),
        ("<button onclick=\"location='/user/' + id\">D</button>", {}),
        ("<button onclick=\"if (location=='/e') go()\">E</button>", {}),
        ('<div data-href="/f" title="F"></div>', {"/f": "F"}),
        ('<div data-url="/g">G</div><div data-url="/h"></div>', {"/g": "G"}),
        ('<div class="share-button" data-url="/i">Share</div>', {}),
        ('<form><button formaction="/j">J</button></form>', {"/j": "J"}),
        ('<form method="POST"><button formaction="/k">K</button></form>', {}),
        ('<form><button formmethod="post" formaction="/l">L</button></form>', {}),
        ('<select onchange="location=this.value"><option value="">-<option value="/m">M</select>', {"/m": "M"}),
        ('<select class="ctools-jump-menu"><option value="a1b2::/n">N</select>', {"/n": "N"}),
        ('<select name="country"><option value="/o">O</select>', {}),
    ],
)
def test_what_is_clicked_like_a_link_is_one(html: str, expected: dict[str, str]) -> None:
    table = f"<table>{html}</table>" if html.startswith("<tr") else html
    assert found(table) == expected


@pytest.mark.parametrize(
    "address",
    [
        *("/a.js", "/a.css?v=1", "/a.PNG", "/f.woff2", "/feed.xml", "/data.json", "/_next/static/x", "/api/v1/users"),
        *("/node/%", "/a/{id}", "/a/:id", "/[slug]", "/admin/*", "/wp-json/x", "/x?token=1", "/user/logout", "/a b"),
        *("", "#a", "/" + "a" * 1_000),
    ],
)
def test_parts_of_pages_calls_and_templates_are_no_pages(address: str) -> None:
    assert not leads_to_page(address)


@pytest.mark.parametrize("address", ["/a", "/a.html", "/minutes.pdf", "/v1.2", "/api/guide", "/a%20b", "b?page=2"])
def test_addresses_of_pages_may_be_pages(address: str) -> None:
    assert leads_to_page(address)


def test_F64_hidden_links_never_push_out_visible_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.extract.links.MAX_LINKS", 4)
    hidden = settings_json([{"url": f"/h{number}"} for number in range(5)])
    document = read("".join(f'<a href="/v{number}">v</a>' for number in range(3)), hidden)
    assert [link.url[-2:] for link in document.links] == ["v0", "v1", "v2", "h0"]
    assert document.links_left_out == 4


def test_the_recipe_without_hidden_links_reads_visible_ones_only() -> None:
    html = f'<a href="/a">A</a>{settings_json({"url": "/b"})}<p>Words</p>'
    body = Body(url=URL, data=html.encode())
    assert [link.url for link in extract_visible(body).links] == ["https://city.example/a"]
    assert len(extract(body).links) == 2
    assert extract(body).links_hash != extract_visible(body).links_hash


HOSTILE = {
    "5 MB of addresses": settings_json([f"/page/{number}" for number in range(400_000)]),
    "many scripts": settings_json({"url": "/a"}) * 3_000,
    "deep lists": f'<script type="application/ld+json">{"[" * 400_000}</script>',
    "deep objects": settings_json(0).replace("0<", '{"a":' * 900 + "1" + "}" * 900 + "<"),
    "a long number": f'<script type="application/json">{"9" * 900_000}</script>',
    "many settings": "<script>jQuery.extend(Drupal.settings, {</script>" * 5_000,
    "nested rows": '<div data-href="/x">word ' * 300 + "much text " * 20_000,
    "clicks": "<i onclick=\"location='/x'\">x</i>" * 5_000,
    "clicks with gaps": f"<i onclick=\"location='/x'{' ' * 1_900}+\">x</i>" * 2_000,
    "a long click": f'<i onclick="{"location=" * 100_000}">x</i>',
    "options": "<select class=jump>" + '<option value="/x">x</option>' * 4_000 + "</select>",
    "menus": "<select class=jump><option value=/x>x</select>" * 2_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_F64_hostile_data_costs_little(name: str) -> None:
    html = f"<html><body><p>Words</p>{HOSTILE[name]}</body></html>".encode()
    body = Body(url=URL, data=html)
    start = time.process_time()
    plain = extract_visible(body)
    between = time.process_time()
    document = extract(body)
    assert time.process_time() - between < (between - start) + CPU_SECONDS
    assert document.links[: len(plain.links)] == plain.links
    assert document.content_hash == plain.content_hash


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["/a", "/\x00", "http://", "https://[", "//", "/\ud800", "https://x.example/\u202e", "<b>", "&#0;"]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["url", "title", "href", "name", "@id", "@type", "item", "x"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)
TYPES = st.sampled_from(
    [
        'type="application/json" data-drupal-selector="drupal-settings-json"',
        'type="application/json"',
        'type="application/json" id="__NUXT_DATA__"',
        'type="application/ld+json"',
    ]
)


@examples(60)
@given(data=VALUES, attributes=TYPES, cut=st.integers(0, 40))
def test_whatever_data_says_links_can_be_stored(data: Any, attributes: str, cut: int) -> None:
    text = json.dumps(data)
    script = f"<script {attributes}>{text[: len(text) - cut] if cut < 20 else text}</script>"
    for link in read("", script).links:
        assert link.url.startswith(("http://", "https://"))
        assert "\0" not in link.text
        (link.url + link.text).encode()


@pytest.mark.slow
def test_naughty_json_and_strings_break_nothing(shared: Path) -> None:
    naughty = shared / "data" / "naughty"
    rows = gzip.decompress((naughty / "json_parsing.jsonl.gz").read_bytes()).decode("utf-8", "replace")
    strings = json.loads((naughty / "blns.json").read_text("utf-8"))
    texts = [*rows.splitlines(), *(json.dumps({"url": f"/{each}", "title": each}) for each in strings)]
    scripts = [f'<script type="application/ld+json">{text}</script>' for text in texts]
    scripts += [f'<i onclick="location=\'{each}\'">x</i><b data-href="{each}">y</b>' for each in strings]
    assert len(scripts) > 1_000
    for script in scripts:
        for link in extract_html(Body(url=URL, data=script.encode())).links:
            (link.url + link.text).encode()
