"""Names: in code as one word, in titles as the question itself."""

from afresh.search.query import alternatives, parse
from afresh.search.ranking import TITLED, title_bonus


def test_a_name_in_code_counts_as_itself_and_as_its_parts() -> None:
    assert parse("to_char of a date").names == (("to", "char"),)
    assert '"to char"' in alternatives(parse("to_char"))
    assert '"char"' in alternatives(parse("to_char"))
    assert parse("json.dumps()").names == (("json", "dumps"),)
    assert parse("two-dimensional flow").names == ()
    assert '"two dimensional"' not in alternatives(parse("two-dimensional flow"))


def test_one_word_in_quotes_is_a_must_too() -> None:
    assert parse('"vacuum" table').phrases == (("vacuum",),)
    assert parse('"代理服务器"').phrases == (("代理服务器",),)


def test_a_page_gains_by_its_title_as_far_as_it_is_the_question() -> None:
    assert title_bonus("VACUUM", ["vacuum"]) == TITLED
    assert title_bonus("9.7. Pattern Matching", ["pattern", "matching"]) == TITLED
    assert 0 < title_bonus("Routine vacuum", ["vacuum"]) < TITLED / 2
    assert title_bonus("Locks", ["vacuum"]) == title_bonus("Locks", []) == 0
