"""Determine the language of a text: the declared language, unless the text clearly contradicts it."""

import json
import math
import re
import struct
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from afresh.text.language import normalise_tag

CLEAR = 0.6  # minimum probability of a language in the table of languages
CONFIRMED = 0.3  # the same if the guess from common words agrees
SAMPLE_CHARS = 1_500
FEWEST_VOTES = 6
FEWEST_CHARS = 10  # minimum characters of a script to identify a language
FEWEST_LETTERS = 80  # minimum letters of a text to contradict the declared language; an ideograph counts as three

_NO_LANGUAGE = frozenset({"und", "mul", "zxx", "mis", "x", "i"})
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ADDRESS = re.compile(r"://[^\s<>()\[\]]+")  # the scheme stays: finding its start would be slow

# First and last code point of scripts that identify one language or a few.
_SCRIPTS = (
    ("ja", 0x3040, 0x30FF), ("ko", 0xAC00, 0xD7AF), ("zh", 0x4E00, 0x9FFF), ("el", 0x0370, 0x03FF),
    ("ru", 0x0400, 0x04FF), ("hy", 0x0530, 0x058F), ("he", 0x0590, 0x05FF), ("ar", 0x0600, 0x06FF),
    ("hi", 0x0900, 0x097F), ("bn", 0x0980, 0x09FF), ("ta", 0x0B80, 0x0BFF), ("te", 0x0C00, 0x0C7F),
    ("th", 0x0E00, 0x0E7F), ("my", 0x1000, 0x109F), ("ka", 0x10A0, 0x10FF), ("km", 0x1780, 0x17FF),
)  # fmt: skip
_SCRIPT_CHARACTER = re.compile("[\u0370-\uffff]")
# Letters or words that distinguish the languages of one script; the first match wins.
_DISTINCTIVE: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
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
# Groups of languages that a guess may confuse, so that the declaration of the page decides between them.
_SIMILAR = ("no nb nn da", "hr sr bs sh", "id ms", "zh yue wuu cmn", "pt gl", "cs sk", "fa prs", "fil tl")

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


def language_of(text: str, *declared: str | None) -> str | None:
    """Return the declared tag that fits a text, or a guess if there is none; None if the language is unclear."""
    hints = [tag for raw in declared if (tag := normalise_tag(raw)) and primary(tag) not in _NO_LANGUAGE]
    sample = prose_of(text)
    if hints and primary(hints[0]) == "en" and is_plainly_english(sample):
        return hints[0]
    guess = guess_by_sample(sample)
    if not hints:
        return guess or (classify(sample) if is_long(sample) else None)
    return _agreeing(hints, guess) or _settle(sample, hints, guess)


def _agreeing(hints: Sequence[str], language: str | None) -> str | None:
    return next((hint for hint in hints if language and are_similar(hint, language)), None)


def _settle(sample: str, hints: Sequence[str], guess: str | None) -> str:
    """Return the first of `hints`, unless the text is clearly in another language (which fits `guess` if not None)."""
    doubtful = guess is not None or (primary(hints[0]) == "en" and contradicts_english(sample))
    if not doubtful or not is_long(sample):
        return hints[0]
    found = classify(sample, CONFIRMED if guess else CLEAR)
    if found is None or (guess and not are_similar(found, guess)):
        return hints[0]
    return _agreeing(hints, found) or found


def classify(sample: str, enough: float = CLEAR) -> str | None:
    language, share = language_table().classify(sample)
    return language if share >= enough else None


def primary(tag: str) -> str:
    return tag.partition("-")[0].lower()


def are_similar(one: str, other: str) -> bool:
    """Return whether two tags name the same language, or two languages that are easily confused."""
    pair = {primary(one), primary(other)}
    return len(pair) == 1 or any(pair.issubset(group.split()) for group in _SIMILAR)


def guess_by_sample(sample: str) -> str | None:
    """Return the most likely language of prose (in lower case) by its script and common words; None if unclear."""
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
    return sample.count(" the ") + sample.count(" and ") >= FEWEST_VOTES


def contradicts_english(sample: str) -> bool:
    letters = sum(map(str.isalpha, sample))
    plain = len(sample.encode("ascii", "ignore")) + letters - len(sample)
    return not sample.isascii() and (letters - plain) * 40 > letters


def is_long(sample: str) -> bool:
    """Return whether a sample is long enough to contradict the language that its page declares."""
    letters = sum(map(str.isalpha, sample))
    return letters >= FEWEST_LETTERS or 3 * sum(_script_counts(sample).values()) >= FEWEST_LETTERS


def _script_counts(sample: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for char, times in Counter(_SCRIPT_CHARACTER.findall(sample)).items():
        for language, first, last in _SCRIPTS:
            if first <= ord(char) <= last:
                counts[language] += times
    if counts["ja"] * 20 > counts["zh"]:  # Japanese mixes kana into ideographs, Chinese has none
        counts["ja"] += counts.pop("zh", 0)
    return counts


def _relative(language: str, sample: str) -> str | None:
    """Return the language of a sample: one of those that share the script of `language`, or None if unclear."""
    if language not in _DISTINCTIVE:
        return language
    relatives = _DISTINCTIVE[language]
    return next((relative for relative, signs in relatives if any(sign in sample for sign in signs)), None)


def _by_words(sample: str) -> str | None:
    votes: Counter[str] = Counter()
    for word, times in Counter(filter(_VOTES.__contains__, sample.split())).items():
        for language in _VOTES[word]:
            votes[language] += times
    ranked = votes.most_common(2)
    if not ranked or ranked[0][1] < FEWEST_VOTES:
        return None
    if len(ranked) == 2 and ranked[0][1] * 4 < ranked[1][1] * 5:
        return None  # the best language leads by less than a quarter
    return ranked[0][0]


FILE = "language_table.bin"  # written by scripts/distil_languages.py
SHARPNESS = 3.0  # of the probabilities, so that as many texts are clear as with the whole model
_FRACTION = 64  # weights are whole numbers of this fraction
_LANE = 4  # bytes in which one language is summed


class LanguageTable(NamedTuple):
    """How typical byte sequences are of languages; without numpy, because every parser process may need it."""

    languages: list[str]  # one may occur twice, in two scripts
    priors: list[float]  # log probability of each language
    floors: list[float]  # log probability of a sequence that a language does not have
    step: float  # log probability of one unit above the floor
    rows: dict[bytes, bytes]  # units above the floor, one byte per language
    max_sequence_bytes: int

    def classify(self, text: str) -> tuple[str, float]:
        data = unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")
        counts = Counter(self._sequences_in(data))
        weights = [(self.rows[each], round(_FRACTION * math.log1p(times))) for each, times in counts.items()]
        whole = sum(weight for _, weight in weights) / _FRACTION
        sharpness = SHARPNESS / math.sqrt(len(data) or 1)
        scores = [
            (prior + floor * whole + self.step * units / _FRACTION) * sharpness
            for prior, floor, units in zip(self.priors, self.floors, self._summed(weights), strict=True)
        ]
        best = max(scores)
        shares: defaultdict[str, float] = defaultdict(float)
        for language, score in zip(self.languages, scores, strict=True):
            shares[language] += math.exp(score - best)
        language = max(shares, key=shares.__getitem__)
        return language, shares[language] / sum(shares.values())

    def _sequences_in(self, data: bytes) -> Iterator[bytes]:
        """Yield the longest known sequence that ends at each byte."""
        for end in range(1, len(data) + 1):
            for start in range(max(0, end - self.max_sequence_bytes), end):
                sequence = data[start:end]
                if sequence in self.rows:
                    yield sequence
                    break

    def _summed(self, weights: list[tuple[bytes, int]]) -> tuple[int, ...]:
        """Return the weighted sum of table rows for each language; one large integer sums all languages at once."""
        size = _LANE * len(self.languages)
        lanes, whole = bytearray(size), 0
        for row, weight in weights:
            lanes[::_LANE] = row
            whole += weight * int.from_bytes(lanes, "little")
        return struct.unpack(f"<{len(self.languages)}I", whole.to_bytes(size, "little"))


@cache
def language_table() -> LanguageTable:
    head, _, packed = files("afresh.extract").joinpath(FILE).read_bytes().partition(b"\n")
    facts, data = json.loads(head), zlib.decompress(packed)
    sequences, at = list[bytes](), 0
    for length, number in facts["sequences"]:
        end = at + length * number
        sequences += [data[start : start + length] for start in range(at, end, length)]
        at = end
    width = len(facts["languages"])
    rows = (data[start : start + width] for start in range(at, len(data), width))
    return LanguageTable(
        facts["languages"],
        facts["priors"],
        facts["floors"],
        facts["step"],
        dict(zip(sequences, rows, strict=True)),
        max(length for length, _ in facts["sequences"]),
    )
