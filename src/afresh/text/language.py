"""Normalise language tags, and guess the language of pages that do not declare it."""

import re
from collections import Counter

LONGEST_TAG = 35  # RFC 5646 section 4.4.1
SAMPLE_CHARS = 1_500
FEWEST_VOTES = 6
FEWEST_CHARS = 10  # of a script
FEWEST_LETTERS = 80  # of a text that may contradict its page; an ideograph counts as three

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ADDRESS = re.compile(r"://[^\s<>()\[\]]+")  # the scheme stays: finding its start would be slow

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

# First and last code point of the blocks that identify a language, or a few, by their script.
_SCRIPTS = (
    ("ja", 0x3040, 0x30FF), ("ko", 0xAC00, 0xD7AF), ("zh", 0x4E00, 0x9FFF), ("el", 0x0370, 0x03FF),
    ("ru", 0x0400, 0x04FF), ("hy", 0x0530, 0x058F), ("he", 0x0590, 0x05FF), ("ar", 0x0600, 0x06FF),
    ("hi", 0x0900, 0x097F), ("bn", 0x0980, 0x09FF), ("ta", 0x0B80, 0x0BFF), ("te", 0x0C00, 0x0C7F),
    ("th", 0x0E00, 0x0E7F), ("my", 0x1000, 0x109F), ("ka", 0x10A0, 0x10FF), ("km", 0x1780, 0x17FF),
)  # fmt: skip
_SCRIPTS_START = 0x0370
# Letters or words that distinguish the languages of one script; the first match wins.
_TELLING: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "ru": (
        ("be", ("ў",)), ("sr", ("ђ", "ћ", "љ", "њ", "ј")), ("mk", ("ѓ", "ќ", "ѕ")), ("uk", ("ї", "є", "ґ")),
        ("kk", ("қ", "ғ", "ұ")), ("mn", ("ө", "ү")), ("ru", ("ы", "э", "ё")), ("uk", ("і",)),
    ),
    "ar": (
        ("ur", ("ٹ", "ڈ", "ڑ", "ے", "ں")), ("fa", ("پ", "چ", "ژ", "گ", "ی")), ("ar", ("ة", "ى", "ال")),
    ),
    "hi": (
        ("mr", ("ळ", " आहे", " आणि ")), ("ne", (" छ ", " छ।", " हुन्छ", " गर्न ")),
        ("hi", (" है", " हैं", " के ", " की ", " में ")),
    ),
}  # fmt: skip
# Languages that guesses often confuse: the declaration of the page decides between them.
_KIN = ("no nb nn da", "hr sr bs sh", "id ms", "zh yue wuu cmn", "pt gl", "cs sk", "fa prs", "fil tl")

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
    "hu": "a az és egy hogy nem is van ha mint vagy akkor lehet kell ezt meg csak így már után azt ki be",
    "ro": "și în de la cu pe nu care este sau mai pentru din un o fi că a al ale prin sunt atunci puteți",
    "id": "yang dan di untuk dengan dari ini pada tidak adalah atau dalam akan dapat ke itu oleh jika anda",
    "vi": "và của là có cho được các một không những trong để với này khi bạn từ đó như sẽ cần sau hãy",
    "fi": "ja on ei se että oli hän joka mutta myös kun niin ovat tai sen kuin voi ole jos mukaan",
}
_VOTES: dict[str, tuple[str, ...]] = {}
for _language, _words in _FUNCTION_WORDS.items():
    for _function_word in _words.split():
        _VOTES[_function_word] = (*_VOTES.get(_function_word, ()), _language)


def normalise_tag(raw: str | None) -> str | None:
    """Return a BCP-47 tag in its usual case (`pt-BR`, `zh-Hant-TW`); None if it is invalid."""
    tag = (raw or "").strip().partition(".")[0].partition(",")[0].strip().replace("_", "-").lower()
    if not tag or len(tag) > LONGEST_TAG:
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


def primary(tag: str) -> str:
    """Return the language of a tag without script and region."""
    return tag.partition("-")[0].lower()


def are_kin(one: str, other: str) -> bool:
    """Return whether two tags name the same language, or two that a sample cannot distinguish."""
    pair = {primary(one), primary(other)}
    return len(pair) == 1 or any(pair.issubset(kin.split()) for kin in _KIN)


def guess_language(text: str) -> str | None:
    """Return the most likely language of a text without its code; None if unclear."""
    return guess_by_sample(prose_of(text))


def guess_by_sample(sample: str) -> str | None:
    """Return the most likely language of prose in lower case; None if unclear."""
    counts = {} if sample.isascii() else _script_counts(sample)
    if counts:
        language, count = max(counts.items(), key=lambda item: item[1])
        if count >= FEWEST_CHARS and count * 3 >= sum(map(str.isalpha, sample)):
            return _relative(language, sample)
    return _by_words(sample)


def prose_of(text: str) -> str:
    """Return the beginning of a text in lower case, without code, comments and URLs."""
    start = text[: 3 * SAMPLE_CHARS]
    if "<!--" in start:
        start = _COMMENT.sub(" ", start)
    for fence in ("\n```", "\n~~~"):
        if fence in start or start.startswith(fence[1:]):
            start = " ".join(f"\n{start}".split(fence)[::2])
    if "`" in start:
        start = " ".join(start.split("`")[::2])
    if "://" in start:
        start = _ADDRESS.sub(" ", start)
    return start[:SAMPLE_CHARS].lower()


def is_plainly_english(sample: str) -> bool:
    """Return whether the most common English words alone prove that a sample is English."""
    return sample.count(" the ") + sample.count(" and ") >= FEWEST_VOTES


def contradicts_english(sample: str) -> bool:
    """Return whether a sample has too many non-ASCII letters to be English."""
    letters = sum(map(str.isalpha, sample))
    plain = len(sample.encode("ascii", "ignore")) + letters - len(sample)
    return not sample.isascii() and (letters - plain) * 40 > letters


def is_long(sample: str) -> bool:
    """Return whether a sample is long enough to contradict the declaration of its page."""
    letters = sum(map(str.isalpha, sample))
    return letters >= FEWEST_LETTERS or 3 * sum(_script_counts(sample).values()) >= FEWEST_LETTERS


def _script_counts(sample: str) -> dict[str, int]:
    """Return the number of characters of each script in `_SCRIPTS`, by language."""
    counts: Counter[str] = Counter()
    for char, times in Counter(sample).items():
        if ord(char) >= _SCRIPTS_START:
            for language, first, last in _SCRIPTS:
                if first <= ord(char) <= last:
                    counts[language] += times
    if counts["ja"] * 20 > counts["zh"]:  # Japanese mixes kana into ideographs, Chinese has none
        counts["ja"] += counts.pop("zh", 0)
    return counts


def _relative(language: str, sample: str) -> str | None:
    """Return which language of a script it is; None if no sign of one is found."""
    if language not in _TELLING:
        return language
    for relative, summaries in _TELLING[language]:
        if any(sign in sample for sign in summaries):
            return relative
    return None


def _by_words(sample: str) -> str | None:
    votes: Counter[str] = Counter()
    for word, times in Counter(sample.split()).items():
        for language in _VOTES.get(word, ()):
            votes[language] += times
    ranked = votes.most_common(2)
    if not ranked or ranked[0][1] < FEWEST_VOTES:
        return None
    if len(ranked) == 2 and ranked[0][1] * 4 < ranked[1][1] * 5:
        return None  # the lead is under a quarter: no answer is better than a wrong one
    return ranked[0][0]
