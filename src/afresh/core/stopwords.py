"""Words that nearly every text holds: they say little about what is asked for."""

_ENGLISH = """
a about all also am an and any are as at be because been being but by can cannot could did do does doing
for from had has have having he her him his how i if in into is it its itself just let may me might more most
must my no nor not of on only or other our out over own shall she should so some such than that the their
them then there these they this those through to too under until up us very was we were what when where which
while who whom whose why will with would you your
"""
_GERMAN = """
aber als am auch auf aus bei das dass dem den der des ein eine einem einen einer eines es für ich im
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

STOP_WORDS = frozenset(
    " ".join((_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH)).split()
)
