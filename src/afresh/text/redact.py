"""Mask secrets in text, and escape control characters, so that it can be displayed."""

import re
from collections.abc import Iterable
from urllib.parse import unquote_plus

MASK = "***"
NOT_ALLOWED = "address not allowed"
MAX_MASKED_CHARACTERS = 20_000
CUT = " […]"

# Characters that end a line, control a terminal or change the direction of text, and lone surrogates.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_USER = re.compile(r"(://)(?!(?-i:USER@))[^/\s@?#\\]*(?:%40|@)(?=[^/\s])", re.IGNORECASE)
_DATABASE = re.compile(r"\bpostgres(?:ql)?://")
_DATABASE_END = re.compile(r"://|[\r\n]")
_NAMED_USER = re.compile(r"[^\s/?#@:]*+:")
_PAIR = re.compile(r"([?&;])([^=&;#\s?]{1,200})=([^&;#\s]+)")
_SECRET_ENDS = (
    *("token", "key", "keyid", "secret", "password", "passwd", "passphrase", "pwd", "signature", "sig"),
    *("auth", "authorization", "credential", "credentials", "jwt", "session", "sessionid", "sid"),
)
_NAMES = r"api[_-]?key|[a-z]+[_-](?:token|secret|key)|token|secret|password|passwd|signature"
# Placeholders and ordinary words after a name such as `token`, which are not secrets.
_ADVICE = (
    r"(?!\*\*\*|<[a-z][a-z _-]{0,30}>|\$AFRESH_[A-Z_]+"
    r"|(?:a|an|and|cannot|expected|is|may|missing|must|no|not|or|set|the|this|unknown)\s)"
)
_NAMED = re.compile(rf"(?i)(\b(?:{_NAMES})[\"']?\s*+[:=]\s*+[\"']?){_ADVICE}([^\s\"',;&]+)")
_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization[\"']?\s*+[:=]\s*+[\"']?)"
    rf"((?:(?:basic|bearer|digest|token)\s++)?+){_ADVICE}\S+"
)
_COOKIE = re.compile(r"(?i)\b((?:set-)?cookie[\"']?\s*[:=]).*")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")


def one_line(text: str) -> str:
    """Return the text on one line, with invisible characters escaped."""
    if not _UNSEEN.search(text):
        return text
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\\", "\\\\"))


def mask_pairs(text: str) -> str:
    """Return a text in which the values of secret query parameters are masked in all URLs."""
    return _PAIR.sub(_masked_pair, text)


def _masked_pair(found: re.Match[str]) -> str:
    name = unquote_plus(found[2]).lower().rstrip("]")
    secret = name.endswith(_SECRET_ENDS) or any(part in _SECRET_ENDS for part in re.split(r"[^a-z0-9]+", name) if part)
    return f"{found[1]}{found[2]}={MASK}" if secret else found[0]


def mask_secrets(text: str, known: Iterable[str] = ()) -> str:
    """Return a text with the secrets in `known` masked, and all parts that look like passwords, tokens or keys.

    A text longer than MAX_MASKED_CHARACTERS is first cut after a word: half of a secret might not be recognised.
    """
    for secret in known:
        text = text.replace(secret, MASK)
    if len(text) > MAX_MASKED_CHARACTERS:
        text = f"{_cut(text)}{CUT}"
    text = mask_pairs(_USER.sub(rf"\1{MASK}@", _mask_databases(text)))
    text = _COOKIE.sub(rf"\1 {MASK}", _HEADER.sub(rf"\1{MASK}", text))
    return _NAMED.sub(rf"\1{MASK}", _BEARER.sub(rf"\1 {MASK}", text))


def _cut(text: str) -> str:
    kept = text[:MAX_MASKED_CHARACTERS]
    end = max(kept.rfind(" "), kept.rfind("\n"))
    kept = kept[:end] if end > MAX_MASKED_CHARACTERS // 2 else kept
    last = kept.rfind("://")  # drop a URL that was cut before its `@`: its password may contain blanks
    return kept[: last + 3] if last >= 0 and "@" not in kept[last:] and "\n" not in kept[last:] else kept


def _mask_databases(text: str) -> str:
    """Mask user and password of every database URL, even if its host is missing or its password is unescaped."""
    parts, at = [], 0
    for found in _DATABASE.finditer(text):
        end = _DATABASE_END.search(text, found.end())
        rest = text[found.end() : end.start() if end else len(text)]
        if not _NAMED_USER.match(rest):
            rest = re.split(r"[\s?#]", rest, maxsplit=1)[0]
        if "@" in rest and not rest.startswith("USER@"):  # used in advice
            parts += [text[at : found.end()], MASK]
            at = found.end() + rest.rindex("@")
    return "".join([*parts, text[at:]])
