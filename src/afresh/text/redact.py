"""What may be told to whom: secrets masked, control characters escaped, refusals without their reasons."""

import re
from collections.abc import Iterable
from urllib.parse import unquote_plus

MASK = "***"
NOT_ALLOWED = "address not allowed"
MAX_MASKED_CHARACTERS = 20_000
CUT = " […]"

# Everything that could end a line, steer a terminal or turn the direction of the text, and lone surrogates.
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
# What advice says in the place of a secret, and the words with which a sentence goes on behind a name.
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
    """The text on one line, with whatever cannot be seen written as an escape."""
    return _UNSEEN.sub(_escape, text.replace("\\", "\\\\") if _UNSEEN.search(text) else text)


def _escape(found: re.Match[str]) -> str:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    code = ord(found[0])
    wide = f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return named.get(found[0]) or (f"\\x{code:02x}" if code < 0x100 else wide)


def mask_pairs(text: str) -> str:
    """The text with the values of parameters that carry secrets masked, in whatever addresses it holds."""
    return _PAIR.sub(_masked_pair, text)


def _masked_pair(found: re.Match[str]) -> str:
    name = unquote_plus(found[2]).lower().rstrip("]")
    secret = name.endswith(_SECRET_ENDS) or any(
        part in _SECRET_ENDS for part in re.split(r"[^a-z0-9]+", name) if part
    )
    return f"{found[1]}{found[2]}={MASK}" if secret else found[0]


def mask_secrets(text: str, known: Iterable[str] = ()) -> str:
    """The text without passwords, tokens and keys: those that `known` lists and those that look like one.

    A text beyond MAX_MASKED_CHARACTERS is cut before it is masked, behind a word, so that no half of a secret
    is left over that nothing recognises.
    """
    for secret in known:
        text = text.replace(secret, MASK)
    if len(text) > MAX_MASKED_CHARACTERS:
        text = f"{_cut(text)}{CUT}"
    text = mask_pairs(_USER.sub(rf"\1{MASK}@", _mask_databases(text)))
    text = _COOKIE.sub(rf"\1 {MASK}", _HEADER.sub(rf"\1{MASK}", text))
    return _NAMED.sub(rf"\1{MASK}", _BEARER.sub(rf"\1 {MASK}", text))


def _cut(text: str) -> str:
    """The beginning of a long text, up to the end of a word where there is one near."""
    kept = text[:MAX_MASKED_CHARACTERS]
    end = max(kept.rfind(" "), kept.rfind("\n"))
    kept = kept[:end] if end > MAX_MASKED_CHARACTERS // 2 else kept
    last = kept.rfind("://")  # a password may hold blanks: an address that was cut before its `@`
    return kept[: last + 3] if last >= 0 and "@" not in kept[last:] and "\n" not in kept[last:] else kept


def _mask_databases(text: str) -> str:
    """Mask the user of every database: its host may be left out, its password may hold anything unescaped."""
    parts, at = [], 0
    for found in _DATABASE.finditer(text):
        end = _DATABASE_END.search(text, found.end())
        rest = text[found.end() : end.start() if end else len(text)]
        if not _NAMED_USER.match(rest):
            rest = re.split(r"[\s?#]", rest, maxsplit=1)[0]
        if "@" in rest and not rest.startswith("USER@"):  # which advice says
            parts += [text[at : found.end()], MASK]
            at = found.end() + rest.rindex("@")
    return "".join([*parts, text[at:]])


def for_strangers(reason: str) -> str:
    """A reason as those may read it who must not learn about the operator's network."""
    return NOT_ALLOWED if NOT_ALLOWED in reason else mask_secrets(one_line(reason))
