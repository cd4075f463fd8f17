"""The words that a text repeats and that others do not: what it is told apart by."""

import re
from collections import Counter
from collections.abc import Iterable

from afresh.search.stemming import SPACELESS, WORD
from afresh.search.stopwords import STOP_WORDS

_DOCUMENTS = """
above across actually add after again allow allows already although always another anything around available
back basic became before below best better between both bring call called cause certain change come common
contain contains create current currently default describe described describes different directly document
documentation done down during each easily easy either else enough even ever every everything example
examples find first follow following follows full further general generally give given gives going good
great have help here however href html http https important include included includes including information
instead keep kind know known large last later least left less like likely list little long look lots main
make makes making many mean means method much multiple must name named need needed needs never next none
note nothing number often once ones order otherwise page part particular people perhaps place please point
possible probably provide provided provides rather really require required requires right said same section
seen several show shown shows side similar simple simply since single small something sometimes soon
specific start still support supported sure take takes tell than thing things think though thus time times
together true type types under unless usage used useful user users uses using usually value values various
version want wants ways well went whether will within without work works would write written year years
yourself
"""
_DULL = frozenset(_DOCUMENTS.split()).union(*STOP_WORDS.values())
_IDEOGRAPHS = re.compile("[\u3005\u30a1-\u30fa\u30fc\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]{2,}")
_FUNCTION = re.compile("[的了是在和与及或也就都而其这那我你他她它们被把个着不有为以可等使用对于从到]")
_SPACELESS = re.compile(f"[{SPACELESS}]")
_SAMPLE = 1_500  # characters of a script without spaces: their pairs are many
# Scripts in which a word holds marks that are no letters: they take the slow pattern.
_INTRICATE = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0590-\u1dff\u2e80-\ua4cf\ua500-\uffef\U00010000-\U0010ffff]"
)
_SIMPLE = re.compile(r"[^\W\d_][^\W_]*")
_SHORTEST = 4  # letters, unless all are capitals


def keywords(text: str, told: str, most: int = 8) -> list[str]:
    """Up to so many words that a text repeats, most telling first; none that `told` holds already."""
    if text.isascii() or not _INTRICATE.search(text):
        return _words(text, told, _SIMPLE)[:most]
    sample = text[:_SAMPLE]
    if len(_SPACELESS.findall(sample)) * 4 <= len(sample):
        return _words(text, told, WORD)[:most]
    known = told.casefold()
    return [run for run in _runs(sample) if run.casefold() not in known][:most]


def _words(text: str, told: str, word: re.Pattern[str]) -> list[str]:
    forms = {form: count for form, count in Counter(word.findall(text)).items() if count > 1}
    known = {_key(form) for form in word.findall(told)}
    counts: Counter[str] = Counter()
    shown: dict[str, str] = {}
    for form, count in forms.items():
        if not _telling(form) or (key := _key(form)) in known:
            continue
        counts[key] += count
        if key not in shown or count > forms[shown[key]]:
            shown[key] = form
    ranked = sorted(counts, key=lambda key: -counts[key] * (10 + min(len(key), 10)))
    return [shown[key] for key in ranked]


def _telling(form: str) -> bool:
    if form[0].isdigit() or form.lower() in _DULL:
        return False
    return len(form) >= _SHORTEST or (len(form) > 1 and (form.isupper() or form[0] >= "\u1100"))


def _key(form: str) -> str:
    """One spelling for a word and its plural."""
    key = form.casefold()
    return key[:-1] if len(key) > 4 and key.endswith("s") and not key.endswith("ss") else key


def _runs(text: str) -> list[str]:
    """Stretches of two to four characters that come back, the longest of those that say the same."""
    counts = Counter(_pieces(text))
    often = [piece for piece, count in counts.items() if count > 2]
    ranked = sorted(often, key=lambda piece: -counts[piece] * len(piece))
    kept: list[str] = []
    for piece in ranked[:64]:
        if not any(piece in other or other in piece for other in kept):
            kept.append(piece)
    return kept


def _pieces(text: str) -> Iterable[str]:
    for found in _IDEOGRAPHS.findall(text):
        for run in _FUNCTION.split(found):
            if run and "\u30a1" <= run[0] <= "\u30fc" and len(run) <= 10:
                yield run
                continue
            for size in (2, 3, 4):
                yield from (run[at : at + size] for at in range(len(run) - size + 1))
