"""Normalise language tags."""

import re

MAX_TAG_CHARS = 35  # RFC 5646 section 4.4.1

_TAG = re.compile(
    r"""(?P<language>[a-z]{2,3}(?:-(?P<extlang>[a-z]{3}))?)
        (?P<script>-[a-z]{4})?
        (?P<region>-(?:[a-z]{2}|[0-9]{3}))?
        (?P<variants>(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*)
        (?P<extensions>(?:-[0-9a-wy-z](?:-[a-z0-9]{2,8})+)*)
        (?P<private>-x(?:-[a-z0-9]{1,8})+)?""",
    re.VERBOSE,
)
_PRIVATE = re.compile(r"x(?:-[a-z0-9]{1,8})+")

_PREFERRED = {"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro"}
_GRANDFATHERED = {
    "i-ami", "i-bnn", "i-default", "i-enochian", "i-hak", "i-klingon", "i-lux", "i-mingo",
    "i-navajo", "i-pwn", "i-tao", "i-tay", "i-tsu",
}  # fmt: skip


def normalise_tag(raw: str | None) -> str | None:
    """Return a BCP-47 tag in its usual case (`pt-BR`, `zh-Hant-TW`); None if it is invalid."""
    tag = (raw or "").strip().partition(".")[0].partition(",")[0].strip().replace("_", "-").lower()
    if not tag or len(tag) > MAX_TAG_CHARS:
        return None
    if tag in _GRANDFATHERED or _PRIVATE.fullmatch(tag):
        return tag
    match = _TAG.fullmatch(tag)
    singletons = [part for part in match["extensions"].split("-") if len(part) == 1] if match else []
    if match is None or len(singletons) != len(set(singletons)):
        return None
    language = match["extlang"] or match["language"]
    script, region = match["script"] or "", match["region"] or ""
    rest = match["variants"] + match["extensions"] + (match["private"] or "")
    titled = f"-{script[1:].title()}" if script else ""
    return _PREFERRED.get(language, language) + titled + region.upper() + rest
