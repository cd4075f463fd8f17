"""Words that nearly every text holds: they say little about what is asked for."""

from collections.abc import Collection

_ENGLISH = """
a about all also am an and any are as at be because been being but by can cannot could did do does doing
for from had has have having he her him his how i if in into is it its itself just let may me might more most
must my no nor not of on only or other our out over own shall she should so some such than that the their
them then there these they this those through to too under until up us very was we were what when where which
while who whom whose why will with would you your
"""
_GERMAN = """
aber als am auch auf aus bei das dass dem den der des die ein eine einem einen einer eines es für ich im
ist kann man mit nach nicht oder sich sie sind und vom von wenn werden wie wird zu zum zur über
"""
_FRENCH = """
au aux avec ce ces cette comment dans des du elle en est et il la le les ne ou où par pas pour que
qui se sont sur un une
"""
_SPANISH = """
al como con cómo de del el ella es esta este las lo los más no para pero por que qué se si sin son
su una uno y
"""
_ITALIAN = """
che chi come con da dal dei del della delle di e gli ha il le lo nel nella non per più quando sono
su un una è
"""
_PORTUGUESE = """
ao aos as com como da das de do dos e em mais na não nas no nos o os ou para pelo por que se um uma
são à
"""
_DUTCH = """
aan als bij dat de die dit een en er hebben het hoe ik in is kan met naar niet of om op te van voor
wat worden zijn
"""

_RUSSIAN = """
а без был быть в вы где для до его если есть же за и из или их к как ко когда ли между мне на не но о об он
она они от по при с со так также то того у чем через что чтобы это этот я
"""
_SWEDISH = """
att av de den det du eller en ett för från går har hur i inte jag kan man med när och om på som så till
var vi vid är
"""
_DANISH = """
af at de den der det du eller en er et for fra har hvad hvordan i ikke jeg kan man med når og om på som
til var ved vi
"""
_NORWEGIAN = """
av at de den der det du eller en er et for fra har hva hvordan i ikke jeg kan man med når og om på som
til var ved vi å
"""
_FINNISH = """
ei että hän ja joka jos kanssa kuin kun mikä miten mutta myös niin on ovat se sen sitä tai tämä voi
"""
_TURKISH = """
ama bir bu da daha de gibi için ile ki mi nasıl ne neden o olan olarak ve veya ya
"""
_BY_CONFIG = {
    "english": _ENGLISH,
    "german": _GERMAN,
    "french": _FRENCH,
    "spanish": _SPANISH,
    "italian": _ITALIAN,
    "portuguese": _PORTUGUESE,
    "dutch": _DUTCH,
    "russian": _RUSSIAN,
    "swedish": _SWEDISH,
    "danish": _DANISH,
    "norwegian": _NORWEGIAN,
    "finnish": _FINNISH,
    "turkish": _TURKISH,
}
STOP_WORDS = {config: frozenset(words.split()) for config, words in _BY_CONFIG.items()}
TELLING = 2  # stop words of one language that show in which one a question is asked


def stop_words(words: Collection[str], configs: Collection[str]) -> frozenset[str]:
    """The words that say little: in the languages of the index, and in the one of the question itself."""
    asked = {config: len(stop.intersection(words)) for config, stop in STOP_WORDS.items()}
    most = max(asked.values())
    own = [config for config, count in asked.items() if count == most >= TELLING]
    spoken = [STOP_WORDS[config] for config in (*own, *configs) if config in STOP_WORDS]
    return frozenset().union(*spoken).intersection(words)
