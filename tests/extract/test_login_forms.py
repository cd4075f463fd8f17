"""Pages whose only interactive content is a login, told from their HTML."""

import pytest

from afresh.extract import extract
from afresh.model.fetch import Body, Document

FIELD = "<input type=password name=p>"
WALLS = {
    "one field": f"<form method=post>{FIELD}</form>",
    "no form": FIELD,
    "upper case": "<FORM><INPUT TYPE=PASSWORD></FORM>",
    "with text": f"<p>Please continue.</p><form action=/session>{FIELD}</form>",
    "name first": '<form action="/x"><input autocomplete="username email"><button>Next</button></form>',
    "by action": '<form action="/users/sign_in"><input name=mail><button>Next</button></form>',
    "saml": '<form action="https://idp.test/x"><input type=hidden name=SAMLRequest value=aa></form>',
    "only links to a login": '<p>Docs</p><a href="/auth/google">Sign in with Google</a>',
    "only a button": "<button>Log in</button>",
}
PAGES = {
    "text": "<main><p>Harbours are where ships rest.</p></main>",
    "search": "<form action=/search><input name=q></form><p>Nothing here.</p>",
    "one login link among others": "<a href=/guide>Guide</a><a href=/login>Sign in</a><p>Welcome.</p>",
    "much text": f"<main><p>{'Harbours are where ships rest. ' * 200}</p>{FIELD}</main>",
    "nothing": "",
}


LEGAL = "Use of this system is monitored and subject to the rules of the harbour office. " * 11
NAMED = "<input name=user><input type=password name=pw>"
LONG_WALLS = {
    "legal text": f"<main><h1>Sign in</h1><form>{NAMED}<button>Sign in</button></form><p>{LEGAL}</p></main>",
    "Japanese": (
        f"<h1>ログイン</h1><p>{'このサイトを利用するには認証が必要です。' * 8}</p>"
        f"<form action=/s>{NAMED}<button>ログイン</button></form><a href=/password_reset>お忘れですか</a>"
    ),
    "around it": (
        f"<a href=/><img src=l.png></a><form>{NAMED}<input type=checkbox name=remember><button>Go</button></form>"
        f"<p>{LEGAL}</p><footer><a href=/privacy>x</a><select name=lang></select></footer>"
    ),
    "no password": f"<p>{LEGAL}</p><a href=/auth/google>Sign in with Google</a>",
}
BOX = f"<form action=/login>{NAMED}<button>Log in</button></form>"
LONG_PAGES = {
    "search box": f"<form action=/search><input name=q></form><p>{LEGAL} The password is kept.</p>",
    "login in the header": f"<header>{BOX}</header><main><h1>Docs</h1><p>{LEGAL}</p></main>",
    "login in a bar": f"<div class='navbar top'>{BOX}</div><main><h1>Docs</h1><p>{LEGAL}</p></main>",
    "login link in the header": f"<header><a href=/login>Log in</a></header><main><p>{LEGAL}</p></main>",
    "login in a dialog": f"<dialog>{BOX}</dialog><main><p>{LEGAL}</p><a href=/guide>Guide</a></main>",
}


def read(body: str) -> Document:
    html = f"<!doctype html><html><head><title>Docs</title></head><body>{body}</body></html>"
    return extract(Body(url="https://docs.test/a", data=html.encode()))


@pytest.mark.parametrize("body", WALLS.values(), ids=WALLS)
def test_U1_F122_a_page_whose_only_interactive_content_is_a_login_is_marked(body: str) -> None:
    assert read(body).login


@pytest.mark.parametrize("body", PAGES.values(), ids=PAGES)
def test_U1_F122_other_pages_are_not(body: str) -> None:
    assert not read(body).login


@pytest.mark.parametrize("body", LONG_WALLS.values(), ids=LONG_WALLS)
def test_F183_a_login_is_marked_whatever_text_and_language_is_around_it(body: str) -> None:
    document = read(body)
    assert len(document.markdown) > 120
    assert document.login


@pytest.mark.parametrize("body", LONG_PAGES.values(), ids=LONG_PAGES)
def test_F183_pages_with_a_search_or_a_login_beside_their_content_are_not(body: str) -> None:
    document = read(body)
    assert (document.login, document.asks_password) == (False, False)


def test_F183_a_login_form_among_links_to_other_pages_is_marked_as_a_form_alone() -> None:
    document = read(f"<nav><a href=/guide>Guide</a><a href=/api>API</a></nav>{BOX}<p>{LEGAL}</p>")
    assert (document.login, document.asks_password) == (False, True)
    search = read(f"<form><input name=q></form>{BOX}<p>{LEGAL}</p>")
    assert (search.login, search.asks_password) == (False, True)


def test_U4_F124_a_page_that_sends_its_readers_on_is_marked() -> None:
    stub = "<html><head><meta http-equiv=refresh content='0; url=/guide'></head></html>"
    assert extract(Body(url="https://docs.test/a", data=stub.encode())).leads_on
    frames = "<html><frameset><frame src=/a.html></frameset></html>"
    assert extract(Body(url="https://docs.test/a", data=frames.encode())).leads_on
    assert not read("<p>Text</p>").leads_on
