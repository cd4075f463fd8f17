"""Which keywords fit a link by its words: literal ones, plurals, stems, compounds, other words for it."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.links.keyword_match import (
    APART_SCORE,
    NEAR_MEANING,
    RELATED_SCORE,
    SCORES,
    KeywordFinder,
    looks_alike,
    score_similarity,
    significant_words,
)
from afresh.links.score import LinkToScore
from afresh.links.words import WordMatch, keyword_forms, link_words, match_word, related_phrases

SITE = "https://www.elmford.example"
COMPOUND, STEM, ROOT = SCORES[WordMatch.COMPOUND], SCORES[WordMatch.STEM], SCORES[WordMatch.ROOT]


def always(_: str, __: str) -> float:
    """Plays a model to which all words are alike."""
    return 1.0


def score(keyword: str, text: str = "", path: str = "/", alike: float | None = None) -> float:
    """The score of one keyword for one link; 0 where it does not fit."""
    finder = KeywordFinder([keyword], None if alike is None else lambda _, __: alike)
    found = finder.matches(LinkToScore(SITE + path, text))
    assert set(found) <= {keyword}
    return found[keyword].score if found else 0.0


@pytest.mark.parametrize(
    ("keyword", "text", "path"),
    [
        ("budget", "The Budget, explained", "/"),
        ("budget", "City BUDGETS", "/"),
        ("budget", "", "/finance/budget.html"),
        ("budget", "Download", "/files/FY2026_AdoptedBudget.pdf"),
        ("budget", "", "/show?page=budget&id=3"),
        ("budget", "", "/auditor/budget%20book"),
        ("minutes", "", "/council/meetingMinutesArchive"),
        ("minutes", "", "/MINUTESArchive"),
        ("policy", "Policies", "/"),
        ("policies", "Our policy", "/"),
        ("class", "Classes", "/"),
        ("child", "Children", "/"),
        ("people", "A person", "/"),
        ("life", "Lives", "/"),
        ("analysis", "Analyses", "/"),
        ("press release", "Press Releases", "/"),
        ("press release", "", "/news/press-release-42"),
        ("e-mail", "Send an E-Mail", "/"),
        ("haushalt", "Haushalte", "/"),
        ("bauantrag", "", "/bauantraege"),
        ("bauantrag", "Bauanträge", "/"),
        ("haus", "Häuser", "/"),
        ("verordnung", "Verordnungen", "/"),
        ("steuer", "Steuern", "/"),
        ("élection", "", "/elections"),
        ("procès-verbal", "", "/proces-verbaux"),
        ("elección", "Elecciones", "/"),
        ("biblioteca", "Biblioteche", "/"),
        ("预算", "年度预算报告", "/"),
        ("予算", "令和8年度予算", "/"),
        ("бюджет", "Бюджет города", "/"),
    ],
)
def test_C18_the_word_or_its_plural_in_text_or_path_scores_one(keyword: str, text: str, path: str) -> None:
    assert score(keyword, text, path) == 1.0


@pytest.mark.parametrize(
    ("keyword", "text", "expected"),
    [
        ("permit", "Permitting", STEM),
        ("research", "For researchers", STEM),
        ("contacto", "Contactar", STEM),
        ("haushalt", "Haushaltsplan", COMPOUND),
        ("haushalt", "Nachtragshaushalt", COMPOUND),
        ("election", "Reelection", COMPOUND),
        ("bibliothek", "Stadtbibliotheken", COMPOUND),
        ("donation", "Our donors", ROOT),
        ("pharmacy", "Ask a pharmacist", ROOT),
        ("property tax", "Tax on your property", APART_SCORE),
        ("job", "Vacancies", RELATED_SCORE),
        ("job", "Open positions", RELATED_SCORE),
        ("wahl", "Briefwahl", COMPOUND),
        ("wahl", "Abstimmung", RELATED_SCORE),
    ],
)
def test_C18_other_forms_and_other_words_score_less_than_one(keyword: str, text: str, expected: float) -> None:
    assert score(keyword, text, alike=1.0) == expected < 1.0


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("keep", "Bookkeeping"),
        ("tax", "Taxi stands"),
        ("tax", "Taxonomy"),
        ("election", "Our selection"),
        ("budget", "Budgerigars"),
        ("plan", "Planes"),
        ("list", "A plane to catch"),
        ("form", "Former mayors"),
        ("car", "Care"),
        ("contact", "Contractors"),
        ("policy", "Politics"),
        ("property tax", "Property"),
        ("open positions", "Positions that are open"),
        ("budget", ""),
    ],
)
def test_C18_words_that_only_look_alike_do_not_count(keyword: str, text: str) -> None:
    assert score(keyword, text, alike=1.0) == (APART_SCORE if keyword == "open positions" else 0.0)


@pytest.mark.parametrize(
    ("keyword", "text"), [("court", "Courtyard"), ("university", "Universe"), ("list", "Listen"), ("sport", "Sporting")]
)
def test_a_likeness_of_letters_has_to_be_one_of_meaning(keyword: str, text: str) -> None:
    assert score(keyword, text, alike=0.1) == 0.0
    assert score(keyword, text, alike=0.9) > 0.0


def test_without_vectors_only_letters_that_are_hardly_chance_count() -> None:
    assert score("haushalt", "Haushaltsplan") == COMPOUND
    assert score("court", "Courtyard") == score("editor", "Editing") == score("list", "Listen") == 0.0
    assert score("editor", "Editing", alike=1.0) == ROOT


def test_the_host_says_nothing_of_a_link() -> None:
    assert KeywordFinder(["library"]).matches(LinkToScore("https://library.example/opening-hours", "Hours")) == {}


def test_each_keyword_is_found_with_the_word_that_says_so() -> None:
    finder = KeywordFinder(["budget", "minutes", "tax"], always)
    found = finder.matches(LinkToScore(f"{SITE}/council/2026-budget", "Minutes: spending"))
    assert {keyword: (match.score, match.words) for keyword, match in found.items()} == {
        "budget": (1.0, "budget"),
        "minutes": (1.0, "minutes"),
    }


def test_words_of_an_address_are_split_as_they_are_written() -> None:
    url = f"{SITE}/a_b/meetingMinutes/PDFFile2026.aspx?view=Full%20Text&x"
    assert link_words("“Ödön’s” page", url) == [
        ["ödön", "s", "page"],
        ["a", "b", "meeting", "minutes", "pdf", "file", "2026", "full", "text"],
    ]
    assert link_words("", "http://[broken") == [[], []]
    assert len(link_words("word " * 10_000, SITE + "/word" * 10_000)[0]) <= 60


def test_related_words_go_both_ways_and_never_hold_the_keyword() -> None:
    assert ("vacancy",) in related_phrases(("job",))
    assert ("job",) in related_phrases(("vacancies",))
    assert ("levy",) in related_phrases(("taxes",))
    assert ("haushalt",) in related_phrases(("budgets",))
    assert related_phrases(("zeppelin",)) == ()
    assert ("tax",) not in related_phrases(("taxes",))


@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.text(max_size=20), max_size=4))
def test_any_text_gives_bounded_scores_of_asked_keywords(text: str, path: str, keywords: list[str]) -> None:
    found = KeywordFinder(keywords, always).matches(LinkToScore(f"{SITE}/{path}", text))
    assert set(found) <= set(keywords)
    assert all(0 < match.score <= 1 and match.words for match in found.values())


@given(st.text(string.ascii_lowercase, min_size=2, max_size=12))
def test_a_word_matches_itself_and_its_plural(word: str) -> None:
    assert match_word(keyword_forms(word), word) is WordMatch.SAME
    assert match_word(keyword_forms(word), f"{word}s") is WordMatch.SAME


@given(st.floats())
def test_a_likeness_scores_below_every_word_and_only_from_a_floor_on(likeness: float) -> None:
    found = score_similarity(likeness)
    assert (found is not None) == (likeness >= NEAR_MEANING)
    assert found is None or 0.3 <= found <= 0.5 < RELATED_SCORE


def test_significant_words_come_from_the_text_and_the_last_path_segment() -> None:
    link = LinkToScore(f"{SITE}/students/clubs/chess_2026/?page=budget#top", "The best of chess")
    assert significant_words(link) == ["best", "chess"]
    assert looks_alike("taxi", "tax")
    assert looks_alike("notfall", "abfall")
    assert not looks_alike("voting", "election")
