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
    "much text": f"<main><p>{'Harbours are where ships rest. ' * 40}</p>{FIELD}</main>",
    "nothing": "",
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


def test_U4_F124_a_page_that_sends_its_readers_on_is_marked() -> None:
    stub = "<html><head><meta http-equiv=refresh content='0; url=/guide'></head></html>"
    assert extract(Body(url="https://docs.test/a", data=stub.encode())).leads_on
    frames = "<html><frameset><frame src=/a.html></frameset></html>"
    assert extract(Body(url="https://docs.test/a", data=frames.encode())).leads_on
    assert not read("<p>Text</p>").leads_on
