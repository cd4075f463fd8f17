"""A listing compared with the record: nothing that differs is missed, nothing that is the same is asked."""

from hypothesis import given
from hypothesis import strategies as st

from afresh.crawl.listing_diff import KnownPage, compare
from afresh.model.fetch import Validators
from afresh.model.records import ListedUrl, PageId
from afresh.urls.files import file_url, is_file_url, path_of

_MARKS = st.builds(Validators, size=st.integers(0, 3), mtime_ns=st.one_of(st.none(), st.integers(1, 3)))
_NAMES = st.sampled_from("abcdef")
_LISTED = st.dictionaries(_NAMES, st.one_of(st.none(), _MARKS))
_RECORD = st.dictionaries(_NAMES, st.tuples(_MARKS, st.booleans()))


@given(_LISTED, _RECORD, st.booleans(), st.sets(_NAMES))
def test_what_is_left_alone_is_on_record_as_it_is_listed(
    listed: dict[str, Validators | None], record: dict[str, tuple[Validators, bool]], full: bool, walked: set[str]
) -> None:
    pages = [
        KnownPage(PageId(number), name, 0, marks, sound) for number, (name, (marks, sound)) in enumerate(record.items())
    ]
    items = [ListedUrl(name, 0, marks) for name, marks in listed.items()]
    compared = compare(items, pages, lambda url: url in walked, full=full)
    asked = {item.url for item in compared.asked}
    for name, marks in listed.items():
        same = name in record and record[name] == (marks, True) and marks is not None and bool(marks)
        assert (name in asked) == (full or not same)
    assert {item.url for item in compared.gone} == set(record) - set(listed) - walked


@given(st.binary(min_size=1, max_size=40).filter(lambda raw: b"\0" not in raw))
def test_F83_any_name_becomes_an_address_and_back(raw: bytes) -> None:
    path = "/" + raw.decode("utf-8", "surrogateescape")
    url = file_url(path)
    assert url.isascii()
    assert url.isprintable()
    assert " " not in url
    assert is_file_url(url)
    assert path_of(url) == path
