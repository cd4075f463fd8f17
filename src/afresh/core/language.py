"""Language tags made clean, and a small guess for pages that do not name their language."""

import re
from collections import Counter

LONGEST_TAG = 35  # RFC 5646 section 4.4.1
SAMPLE_CHARS = 1_500
FEWEST_VOTES = 6

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

# First and last code point of the blocks that settle a language by their script alone.
_SCRIPTS = (
    ("ja", 0x3040, 0x30FF),
    ("ko", 0xAC00, 0xD7AF),
    ("zh", 0x4E00, 0x9FFF),
    ("el", 0x0370, 0x03FF),
    ("he", 0x0590, 0x05FF),
    ("th", 0x0E00, 0x0E7F),
    ("hi", 0x0900, 0x097F),
    ("ar", 0x0600, 0x06FF),
    ("ru", 0x0400, 0x04FF),
)
_SCRIPTS_START = 0x0370
_TELLING_LETTERS = {"ru": ("uk", "іїєґ"), "ar": ("fa", "پچژگ")}

_FUNCTION_WORDS = {
    "en": "the of and to in is that for it with as are this be on by or an from not you can which",
    "de": "der die und das ist nicht ein eine zu den mit von auf für im sich dem des auch wird werden als",
    "fr": "le la les des et est une un dans pour que qui pas sur au du par avec vous ce sont plus",
    "es": "el los las y es una por para que con del se en un no como más su al este pero son",
    "pt": "o os as e é uma um para que com não do da dos das em no na por se como mais ao são",
    "it": "il di che è la per un una non con del della sono le gli si da nel alla anche come più",
    "nl": "de het een en van is dat niet op te zijn met voor in er aan ook als door om wordt deze",
    "sv": "och att det som en är på för av med till inte den har ett om kan jag vi eller från",
    "da": "og at det som en er på for af med til ikke den har et om kan jeg vi eller fra blev",
    "no": "og å det som en er på for av med til ikke den har et om kan jeg vi eller fra ble",
    "pl": "i w nie na się z do to jest że jak po od za dla przez są oraz lub tym być może",
    "cs": "a v se na je že s z do to pro jako nebo by za od není podle jsou které tak při",
    "tr": "ve bir bu için ile da de olarak olan çok daha gibi ne ama kadar her sonra değil veya en",
    "fi": "ja on ei se että oli hän joka mutta myös kun niin ovat tai sen kuin voi ole jos mukaan",
}
_VOTES: dict[str, tuple[str, ...]] = {}
for _language, _words in _FUNCTION_WORDS.items():
    for _function_word in _words.split():
        _VOTES[_function_word] = (*_VOTES.get(_function_word, ()), _language)


def normalise_tag(raw: str | None) -> str | None:
    """A BCP-47 tag in its usual case (`pt-BR`, `zh-Hant-TW`), or None for what is not one."""
    tag = (raw or "").strip().partition(".")[0].partition(",")[0].strip().replace("_", "-").lower()
    if not tag or len(tag) > LONGEST_TAG:
        return None
    if tag in _GRANDFATHERED or _PRIVATE.fullmatch(tag):
        return tag
    match = _TAG.fullmatch(tag)
    if match is None or _repeats_a_singleton(match["extensions"]):
        return None
    language = match["extlang"] or match["language"]
    script, region = match["script"] or "", match["region"] or ""
    rest = match["variants"] + match["extensions"] + (match["private"] or "")
    titled = f"-{script[1:].title()}" if script else ""
    return _PREFERRED.get(language, language) + titled + region.upper() + rest


def _repeats_a_singleton(extensions: str) -> bool:
    singletons = [part for part in extensions.split("-") if len(part) == 1]
    return len(singletons) != len(set(singletons))


def guess_language(text: str) -> str | None:
    """The language that a text is most likely written in, code left out; None when unclear."""
    sample = _prose(text)
    by_script = None if sample.isascii() else _by_script(sample)
    return by_script or _by_words(sample)


def _prose(text: str) -> str:
    """The first part of a text in lower case, without fenced blocks and code spans."""
    outside = f"\n{text[: 3 * SAMPLE_CHARS]}".split("\n```")[::2]
    spans = " ".join(outside).split("`")[::2]
    return " ".join(spans)[:SAMPLE_CHARS].lower()


def _by_script(sample: str) -> str | None:
    """The language of the script that holds a third of the letters."""
    counts: Counter[str] = Counter()
    for char, times in Counter(sample).items():
        if ord(char) >= _SCRIPTS_START:
            for language, first, last in _SCRIPTS:
                if first <= ord(char) <= last:
                    counts[language] += times
    if not counts:
        return None
    if counts["ja"] * 20 > counts["zh"]:  # Japanese mixes kana into ideographs, Chinese has none
        counts["ja"] += counts.pop("zh", 0)
    language, count = counts.most_common(1)[0]
    if count < 10 or count * 3 < sum(map(str.isalpha, sample)):
        return None
    return _relative(language, sample)


def _relative(language: str, sample: str) -> str:
    """The neighbour that shares the script, if letters that only it uses are there."""
    other, telling = _TELLING_LETTERS.get(language, (language, ""))
    return other if any(char in sample for char in telling) else language


def _by_words(sample: str) -> str | None:
    votes: Counter[str] = Counter()
    for word, times in Counter(sample.split()).items():
        for language in _VOTES.get(word, ()):
            votes[language] += times
    ranked = votes.most_common(2)
    if not ranked or ranked[0][1] < FEWEST_VOTES:
        return None
    if len(ranked) == 2 and ranked[0][1] * 4 < ranked[1][1] * 5:
        return None  # the lead is under a quarter: rather no answer than a wrong one
    return ranked[0][0]
