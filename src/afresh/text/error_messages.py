"""Recognise pages that are error messages, by title and first heading, in seven languages."""

import re

from afresh.text.normalize import headings_in

_ERROR = re.compile(  # a whole title: a message with or without its number, or only the number
    r"\W*(?:(?:http|status|code|oops|sorry|error|fehler|erreur|errore|erro|fout|[45]\d\d)\W+)*(?:"
    r"(?:(?:the|this|that) )?(?:requested )?(?:(?:page|file|url|document|resource) )?"
    r"(?:(?:was |could )?not(?: be)?|can't be|cannot be) found(?: on this server)?"
    r"|(?:(?:the|this|that) )?page (?:does not exist|doesn't exist|is not available|is unavailable|unavailable)"
    r"|(?:internal )?server error|service (?:is )?(?:temporarily )?unavailable|bad gateway|gateway time-?out"
    r"|access denied|too many requests|something went wrong|an (?:unexpected )?error (?:has )?occurred"
    r"|(?:(?:this |the )?(?:web)?site (?:is )?)?(?:currently )?(?:under|down for) maintenance"
    r"|we'll be (?:right )?back(?: soon)?"
    r"|(?:(?:die|diese) )?(?:angeforderte )?(?:seite )?(?:wurde |konnte )?nicht gefunden(?: werden)?"
    r"|(?:die|diese) seite existiert nicht(?: mehr)?|interner server-?fehler|zugriff verweigert|wartungsarbeiten"
    r"|(?:dienst|seite) (?:vorübergehend |derzeit )?nicht (?:verfügbar|erreichbar)"
    r"|(?:cette )?page (?:introuvable|non trouvée|n'existe (?:pas|plus))|erreur interne du serveur"
    r"|accès (?:refusé|interdit)|service (?:temporairement )?indisponible|(?:site )?en maintenance"
    r"|(?:(?:la|esta) )?página no (?:encontrada|existe)|error interno del servidor|acceso (?:denegado|prohibido)"
    r"|servicio (?:temporalmente )?no disponible|(?:sitio )?en mantenimiento"
    r"|pagina non (?:trovata|esistente)|errore interno del server|accesso (?:negato|vietato)"
    r"|servizio (?:temporaneamente )?non disponibile|(?:sito )?in manutenzione"
    r"|(?:esta )?página não (?:encontrada|existe)|erro interno do servidor|acesso (?:negado|proibido)"
    r"|serviço (?:temporariamente )?indisponível|(?:site )?em manutenção"
    r"|(?:deze )?pagina (?:niet gevonden|bestaat niet)|interne serverfout|toegang geweigerd"
    r"|(?:dienst|service) (?:tijdelijk )?niet beschikbaar|(?:(?:web)?site )?in onderhoud"
    r")(?:\W+(?:error|[45]\d\d))*\W*"
    r"|\W*(?:404|[45]\d\d\W+(?:error|fehler|gone|forbidden|unauthori[sz]ed)"
    r"|(?:http|error|fehler|erreur|errore|erro|fout)\W+[45]\d\d(?:\W+(?:error|gone|forbidden|unauthori[sz]ed))?)\W*",
    re.IGNORECASE,
)
_BESIDE_SITE = re.compile(r"\s[-–—|·•»]\s")  # between a title and the name of the site


def is_error_message(title: str, markdown: str = "") -> bool:
    """Return whether the whole title, apart from the name of the site, or the first heading is an error message."""
    titles = (title, *headings_in(markdown)[:1])
    parts = [part.replace("’", "'") for each in titles for part in (each, *_BESIDE_SITE.split(each))]
    return any(map(_ERROR.fullmatch, parts))
