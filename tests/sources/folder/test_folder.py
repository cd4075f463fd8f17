"""Files on a real disk: links, pipes, odd names, and files that change while they are read."""

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from afresh.config.sources import FilesSettings
from afresh.errors import SourceError
from afresh.model.fetch import Body, Failed, Fetched, Gone, NotModified, Refused, Request, Validators
from afresh.model.records import ListedUrl
from afresh.sources.detect import recognise
from afresh.sources.folder.fetcher import FileFetcher, FolderLister, FolderWalk
from afresh.sources.folder.filter import FileFilter, FolderRules
from afresh.sources.folder.ignore import IgnoreFile, parse_ignore_file
from afresh.urls.files import file_url
from afresh.urls.scope import Globs


def lister_of(root: Path, *, mark: str | None = None, globs: Globs | None = None, **rules: object) -> FolderLister:
    verify = str(rules.pop("verify", "stat"))
    file_filter = FileFilter(os.path.realpath(root), FolderRules(**rules), globs)  # type: ignore[arg-type]
    return FolderLister(file_filter, mark=mark, verify=verify)


async def listed(lister: FolderLister) -> list[ListedUrl]:
    return [item async for item in lister.list()]


async def names(lister: FolderLister, root: Path) -> set[str]:
    base = file_url(os.path.realpath(root)) + "/"
    return {item.url.removeprefix(base) for item in await listed(lister)}


async def look(root: Path, path: Path, validators: Validators | None = None, **options: object) -> Fetched:
    lister = lister_of(root)
    fetcher = FileFetcher(str(root), FilesSettings(**options), lister.why_not)  # type: ignore[arg-type]
    return await fetcher.fetch(Request(url=file_url(str(path)), validators=validators))


def grow(root: Path, *paths: str) -> Path:
    """A folder with these files."""
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {path}\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))
    return root


# ---- which files


async def test_a_folder_lists_its_files_with_size_and_time(tmp_path: Path) -> None:
    grow(tmp_path, "a.md", "sub/b.md")
    items = await listed(lister_of(tmp_path))
    assert [(item.url.rpartition("/")[2], item.depth) for item in items] == [("a.md", 0), ("b.md", 1)]
    assert items[0].validators == Validators(size=7, mtime_ns=1_700_000_000_000_000_000)


async def test_hidden_files_binaries_and_what_is_ignored_stay_out(tmp_path: Path) -> None:
    grow(tmp_path, "a.md", ".hidden.md", ".git/config", "logo.png", "build/x.md", "sub/skip.md", "sub/keep.md")
    grow(tmp_path, "node_modules/dep/README.md")
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "sub" / ".gitignore").write_text("skip.md\n")
    lister = lister_of(tmp_path)
    assert await names(lister, tmp_path) == {"a.md", "sub/keep.md"}
    assert lister.dropped == {"binary": 1, "ignored": 2, "made by programs": 1}
    assert await names(lister_of(tmp_path, gitignore=False), tmp_path) == {
        *("a.md", "build/x.md", "sub/skip.md", "sub/keep.md")
    }
    assert await names(lister_of(tmp_path, hidden=True), tmp_path) == {
        *("a.md", ".hidden.md", ".gitignore", "sub/.gitignore", "sub/keep.md")
    }
    assert await names(lister_of(tmp_path, ignore=("sub",)), tmp_path) == {"a.md"}
    assert await names(lister_of(tmp_path, globs=Globs(include=("sub/*",))), tmp_path) == {"sub/keep.md"}
    assert await names(lister_of(tmp_path, globs=Globs(exclude=("*.md",))), tmp_path) == set()


async def test_one_file_is_judged_as_the_walk_judges_it(tmp_path: Path) -> None:
    grow(tmp_path, "a.md", ".hidden.md", "logo.png", "build/x.md", "sub/skip.md", "sub/keep.md", ".x/y.md")
    (tmp_path / ".gitignore").write_text("build/\nskip.md\n")
    (tmp_path / "link.md").symlink_to("a.md")
    lister = lister_of(tmp_path)
    found = await names(lister, tmp_path)
    for path in tmp_path.rglob("*"):
        name = str(path.relative_to(tmp_path))
        if not path.is_dir():
            assert (lister.why_not(file_url(str(path))) is None) == (name in found), name


async def test_F78_links_are_left_out_or_followed_inside_only_and_loops_end(tmp_path: Path) -> None:
    root, outside = grow(tmp_path / "root", "a.md", "sub/b.md"), grow(tmp_path / "outside", "secret.md")
    (root / "out").symlink_to(outside)
    (root / "out.md").symlink_to(outside / "secret.md")
    (root / "loop").symlink_to(root)
    (root / "sub" / "up").symlink_to("..")
    (root / "twice").symlink_to("sub")
    (root / "dead").symlink_to("nowhere")
    plain = lister_of(root)
    assert await names(plain, root) == {"a.md", "sub/b.md"}
    assert plain.dropped == {"symbolic link": 6}
    following = lister_of(root, symlinks=True)
    assert await names(following, root) == {"a.md", "sub/b.md", "twice/b.md"}
    assert following.dropped["link out of the folder"] == 2
    assert following.dropped["link that goes in circles"] >= 2
    seen = await look(root, root / "out" / "secret.md")
    assert isinstance(seen, Gone | Refused)


def test_F78_a_root_that_is_a_link_is_resolved_once_when_it_is_added(tmp_path: Path) -> None:
    root = grow(tmp_path / "real", "a.md")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "page.md").symlink_to("real/a.md")
    assert recognise(str(tmp_path / "link")) == ("folder", file_url(str(root)))
    assert recognise(str(tmp_path / "page.md")) == ("file", file_url(str(root / "a.md")))


async def test_F78_a_folder_that_is_reached_by_a_link_later_is_an_error(tmp_path: Path) -> None:
    root, other = grow(tmp_path / "up" / "root", "a.md"), grow(tmp_path / "other", "a.md", "b.md")
    lister = lister_of(root)
    for place, target in ((root, other), (tmp_path / "up", tmp_path / "moved")):
        place.rename(tmp_path / "moved")
        place.symlink_to(target)
        with pytest.raises(SourceError, match=r"symbolic link now.*kept"):
            await listed(lister)
        assert isinstance(await look(root, root / "a.md"), Failed)
        assert isinstance(await look(root, root / "never.md"), Failed)
        place.unlink()
        (tmp_path / "moved").rename(place)
    assert len(await listed(lister)) == 1


async def test_F78_links_that_are_followed_lead_to_nothing_hidden_or_ignored(tmp_path: Path) -> None:
    root = grow(tmp_path, "a.md", ".env", ".git/config", "priv/p.md", "real/sub/x.md", "real/sub/secret.md")
    (root / ".gitignore").write_text("priv/\n")
    (root / "real" / ".gitignore").write_text("secret.md\n")
    for name, target in {
        "env.md": ".env",
        "gitlink": ".git",
        "config.md": ".git/config",
        "pub": "priv",
        "p.md": "priv/p.md",
        "open": "real/sub",
        "secret2.md": "real/sub/secret.md",
        "fine.md": "real/sub/x.md",
        "realm": "priv/../real",
    }.items():
        (root / name).symlink_to(target)
    lister = lister_of(root, symlinks=True)
    inside = {"a.md", "real/sub/x.md", "open/x.md", "fine.md", "realm/sub/x.md"}
    assert await names(lister, root) == inside
    for path in [*root.glob("*.md"), *root.glob("*/*.md"), root / "gitlink/config", root / "realm/sub/x.md"]:
        name = str(path.relative_to(root))
        assert (lister.why_not(file_url(str(path))) is None) == (name in inside), name


async def test_F78_a_link_beside_a_folder_whose_name_it_begins_with_is_followed(tmp_path: Path) -> None:
    root = grow(tmp_path, "guide/a.md", "guide-old/b.md")
    (root / "guide-old" / "new").symlink_to("../guide")
    assert await names(lister_of(root, symlinks=True), root) == {
        *("guide/a.md", "guide-old/b.md", "guide-old/new/a.md")
    }


@pytest.mark.parametrize("symlinks", [False, True])
async def test_F78_a_folder_that_becomes_a_link_while_a_file_is_looked_at_is_not_followed(
    tmp_path: Path, symlinks: bool
) -> None:
    """The swap happens when everything was checked, right before the file is opened."""
    root, outside = grow(tmp_path / "root", "sub/a.md"), grow(tmp_path / "outside", "a.md")
    fetcher = FileFetcher(str(root), FilesSettings(symlinks=symlinks), lister_of(root, symlinks=symlinks).why_not)
    inside = fetcher._inside

    def swapped(path: str) -> str | None:
        found = inside(path)
        (root / "sub").rename(tmp_path / "away")
        (root / "sub").symlink_to(outside)
        return found

    fetcher._inside = swapped  # type: ignore[method-assign]
    seen = await fetcher.fetch(Request(url=file_url(str(root / "sub/a.md"))))
    assert isinstance(seen, Failed | Gone)


async def test_F78_a_path_that_climbs_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    root = grow(tmp_path / "root", "a.md")
    grow(tmp_path, "secret.md")
    for symlinks in (False, True):
        fetcher = FileFetcher(str(root), FilesSettings(symlinks=symlinks), lambda url: None)
        seen = await fetcher.fetch(Request(url=file_url(f"{root}/../secret.md")))
        assert isinstance(seen, Refused)


@pytest.mark.parametrize("kind", ["link", "dead link", "folder", "pipe"])
async def test_F79_an_ignore_file_that_is_no_file_is_passed_over_as_git_does(tmp_path: Path, kind: str) -> None:
    grow(tmp_path, "a.md", "other/rules")
    odd = tmp_path / ".gitignore"
    (tmp_path / "other" / "rules").write_text("a.md\n")
    match kind:
        case "folder":
            odd.mkdir()
        case "pipe":
            os.mkfifo(odd)
        case _:
            odd.symlink_to("other/rules" if kind == "link" else "nowhere")
    lister = lister_of(tmp_path)
    assert await names(lister, tmp_path) == {"a.md", "other/rules"}
    assert not lister.listing_errors
    assert lister.why_not(file_url(str(tmp_path / "a.md"))) is None


def test_the_rules_of_a_folder_are_read_once_until_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = tmp_path / "sub" / ".gitignore"
    read: list[bytes] = []
    grow(tmp_path, "sub/a.md")
    rules.write_text("".join(f"build{each}/*.tmp\n" for each in range(1000)))

    def parse(data: bytes) -> IgnoreFile:
        read.append(data)
        return parse_ignore_file(data)

    monkeypatch.setattr("afresh.sources.folder.filter.parse_ignore_file", parse)
    file_filter = FileFilter(str(tmp_path), FolderRules())
    FolderWalk(file_filter).run()
    assert all(file_filter.why_not(f"sub/{number}.md") is None for number in range(300))
    assert len(read) == 1
    rules.write_text("7.md\n")
    assert file_filter.why_not("sub/7.md") == "ignored"
    rules.unlink()
    assert file_filter.why_not("sub/7.md") is None


async def test_an_ignore_file_that_is_too_large_is_reported(tmp_path: Path) -> None:
    grow(tmp_path, "a.md", "sub/b.md")
    (tmp_path / "sub" / ".gitignore").write_text("x\n" * 10_001)
    lister = lister_of(tmp_path)
    assert await names(lister, tmp_path) == {"a.md", "sub/b.md"}
    (errors,) = lister.listing_errors
    assert errors.startswith("sub/.gitignore is too large")
    assert lister.mark is None


async def test_F79_special_files_are_skipped_and_never_waited_for(tmp_path: Path) -> None:
    grow(tmp_path, "a.md")
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "zero.md").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "door.md"))
        lister = lister_of(tmp_path)
        assert await names(lister, tmp_path) == {"a.md"}
        assert lister.dropped == {"special file": 2, "symbolic link": 1}
        assert isinstance(await look(tmp_path, tmp_path / "pipe.md"), Refused)


def test_F79_what_may_not_be_read_fails_and_what_vanished_is_gone(tmp_path: Path) -> None:
    root = grow(tmp_path / "root", "a.md", "closed/b.md")
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    (root / "a.md").chmod(0)
    (root / "closed").chmod(0)
    child = os.fork()
    if child == 0:  # in a process of its own, as it may become somebody else
        os._exit(_as_nobody(root))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _as_nobody(root: Path) -> int:
    import asyncio

    try:
        if os.geteuid() == 0:  # who may read everything
            os.setuid(65534)
        seen = asyncio.run(look(root, root / "a.md"))
        inside = asyncio.run(look(root, root / "closed" / "b.md"))
        lister = lister_of(root)
        asyncio.run(listed(lister))
        vanished = asyncio.run(look(root, root / "never.md"))
        kept = isinstance(seen, Failed) and isinstance(inside, Failed)
        return 0 if kept and lister.listing_errors and isinstance(vanished, Gone) else 1
    except BaseException:
        return 2


async def test_F80_a_root_that_is_not_there_is_an_error_and_proves_nothing(tmp_path: Path) -> None:
    root = grow(tmp_path / "root", "a.md")
    lister = lister_of(root)
    root.rename(tmp_path / "elsewhere")
    with pytest.raises(SourceError, match="cannot be read"):
        await listed(lister)
    assert isinstance(await look(root, root / "a.md"), Failed)
    root.mkdir()
    assert isinstance(await look(root, root / "a.md"), Failed)  # empty: not mounted, most likely
    grow(root, "b.md")
    assert isinstance(await look(root, root / "a.md"), Gone)


# ---- what a look shows


async def test_a_file_is_read_whole_and_not_again_while_size_and_time_hold(tmp_path: Path) -> None:
    grow(tmp_path, "a.md")
    seen = await look(tmp_path, tmp_path / "a.md")
    assert isinstance(seen, Body)
    assert seen.data == b"# a.md\n"
    assert seen.proven
    again = await look(tmp_path, tmp_path / "a.md", seen.validators)
    assert isinstance(again, NotModified)
    sure = await look(tmp_path, tmp_path / "a.md", seen.validators, verify="hash")
    assert isinstance(sure, Body)


async def test_F81_a_file_that_is_written_while_it_is_read_is_one_version_or_a_failure(tmp_path: Path) -> None:
    file = grow(tmp_path, "a.md") / "a.md"
    versions = [b"a" * 200_000, b"b" * 300_000]
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            if number % 2:
                file.write_bytes(versions[0])
            else:
                other = file.with_suffix(".new")
                other.write_bytes(versions[1])
                other.replace(file)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        looks = [await look(tmp_path, file) for _ in range(60)]
    finally:
        stop.set()
        writer.join()
    bodies = {seen.data for seen in looks if isinstance(seen, Body)}
    assert bodies <= {*versions, b"", b"# a.md\n"}
    assert all(isinstance(seen, Body | Failed) for seen in looks)


async def test_F82_a_file_written_just_now_is_not_known_by_its_time(tmp_path: Path) -> None:
    """A second edit within the tick of the clock would have the same size and time."""
    file = grow(tmp_path, "a.md") / "a.md"
    import time

    for ahead in (0, 3600):  # just now, and in the future
        os.utime(file, ns=(time.time_ns() + ahead * 10**9,) * 2)
        seen = await look(tmp_path, file)
        assert isinstance(seen, Body)
        assert not seen.validators
    os.utime(file, (1_600_000_000, 1_600_000_000))  # older than before is another time, too
    seen = await look(tmp_path, file, Validators(size=7, mtime_ns=1_700_000_000_000_000_000))
    assert isinstance(seen, Body)
    assert seen.validators


async def test_F83_a_huge_file_is_left_out_without_reading_it(tmp_path: Path) -> None:
    huge = tmp_path / "huge.md"
    with huge.open("wb") as file:
        file.truncate(1 << 30)
    seen = await look(tmp_path, huge, max_file_bytes=1_000_000)
    assert isinstance(seen, Refused)
    assert "1,073,741,824 bytes" in seen.reason
    lister = lister_of(tmp_path)
    assert await listed(lister) == []
    assert lister.dropped == {"larger than files.max_file_bytes": 1}


async def test_F83_odd_names_round_trip(tmp_path: Path) -> None:
    odd = [b"new\nline.md", b"not-\xff-utf8.md", b"x" * 252 + b".md", b"a..dots.md", b"Case.md", b"case.md", b"a%41.md"]
    for name in odd:
        (tmp_path / os.fsdecode(name)).write_text("words")
        os.utime(tmp_path / os.fsdecode(name), (1_700_000_000, 1_700_000_000))
    items = await listed(lister_of(tmp_path))
    assert len({item.url for item in items}) == len(odd)
    fetcher = FileFetcher(str(tmp_path), FilesSettings(), lister_of(tmp_path).why_not)
    for item in items:
        seen = await fetcher.fetch(Request(url=item.url))
        assert isinstance(seen, Body), item.url
        assert seen.validators == item.validators


# ---- the mark


async def test_a_folder_as_it_was_is_known_by_its_mark(tmp_path: Path) -> None:
    grow(tmp_path, "a.md", "sub/b.md")
    first = lister_of(tmp_path)
    assert len(await listed(first)) == 2
    same = lister_of(tmp_path, mark=first.mark)
    assert await listed(same) == []
    assert same.unchanged
    edits: list[Callable[[], object]] = [
        lambda: os.utime(tmp_path / "a.md", (1, 1)),
        lambda: (tmp_path / "c.md").write_text("new"),
        lambda: (tmp_path / "c.md").unlink(),
        lambda: (tmp_path / "a.md").write_text("longer than before"),
        lambda: (tmp_path / "sub" / "b.md").rename(tmp_path / "sub" / "d.md"),
    ]
    for edit in edits:
        edit()
        later = lister_of(tmp_path, mark=first.mark)
        assert await listed(later)
        assert not later.unchanged
        first = later
    ruled = lister_of(tmp_path, mark=first.mark, ignore=("sub",))
    assert await listed(ruled)
    assert not ruled.unchanged
    sure = lister_of(tmp_path, mark=first.mark, verify="hash")
    assert len(await listed(sure)) == 2
    assert sure.mark is None


async def test_P12_a_walk_ends_when_nobody_waits_for_it(tmp_path: Path) -> None:
    for number in range(50):
        grow(tmp_path, f"folder{number}/a.md")
    seen = 0

    def is_over() -> bool:
        nonlocal seen
        seen += 1
        return seen > 5

    found = FolderWalk(FileFilter(str(tmp_path), FolderRules())).run(is_over)
    assert len(found.files) < 10
