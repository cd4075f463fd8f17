"""Links in the settings that Drupal hands to its scripts, which make menus and cards of them (C22)."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from afresh.extract.html.hidden_links.found import Hidden, Script, Shown
from afresh.extract.html.hidden_links.values import Value, addresses_in, data_of, texts_of
from afresh.urls.canonical import domain_of

_PROGRAMS = ("", "text/javascript", "application/javascript")
_DECODER = json.JSONDecoder()
_OLD_FORM = re.compile(r"Drupal\.settings\s*(?:,|=(?!=))\s*(?=\{)")  # jQuery.extend(Drupal.settings, {…});
# what the system itself serves: never a page that someone wrote
_SYSTEM = re.compile(
    r"/(?:core|modules|themes|profiles|libraries|misc|admin|batch|contextual|quickedit|history|big_pipe|system"
    r"|views|session|entity_embed|editor|media/oembed)(?:/|$)|/sites/[^/]+/(?:modules|themes|libraries|files/(?:css|js|styles))/"
    r"|/(?:statistics|update|cron|install|xmlrpc)\.php|/user/(?:login|logout|register|password)|/api(?:/|$)"
)
_NO_LINK = re.compile(
    r"^(?:src|js|css|api|action|prefix|suffix)$"
    r"|src$|image|img|icon|logo|thumb|avatar|poster|asset|font|ajax|endpoint|callback|template|theme|librar|manifest"
    r"|track|beacon|cdn|proxy|socket|schema|basepath|baseurl|pathprefix|currentpath|currentquery|formaction|destination"
)


def in_drupal_settings(page: Shown) -> Iterator[Hidden]:
    """The addresses in Drupal's settings; those of another host only where words stand beside them."""
    for settings in (*data_of(filter(_is_settings, page.scripts)), *_old_settings(page.scripts)):
        for value in addresses_in(settings):
            if _is_link(value, page.host):
                yield Hidden(value.raw_url, value.text)


def _is_settings(script: Script) -> bool:
    return script.attributes.get("data-drupal-selector") == "drupal-settings-json"


def _old_settings(scripts: Iterable[Script]) -> Iterator[Any]:
    """What Drupal 7 and older hand to a function."""
    programs = (each for each in scripts if each.type in _PROGRAMS and "src" not in each.attributes)
    for text in texts_of(programs):
        found = _OLD_FORM.search(text) if "Drupal.settings" in text else None
        if found is not None:
            with suppress(ValueError, RecursionError):
                yield _DECODER.raw_decode(text, found.end())[0]


def _is_link(value: Value, host: str) -> bool:
    if _NO_LINK.search(value.field):
        return False
    address = value.raw_url
    if _is_elsewhere(address, host):
        return bool(value.text)
    path = address if address.startswith("/") else "/" + "".join(address.split("/", 3)[3:])
    return _SYSTEM.match(path) is None


def _is_elsewhere(address: str, host: str) -> bool:
    """Whether an address names a host, and another one than the page's."""
    if address.startswith("/"):
        return address.startswith("//") and address[2:].partition("/")[0] != host
    return domain_of(address + "/") != host
