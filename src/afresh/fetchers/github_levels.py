"""A tree that is too large for one answer, listed folder by folder."""

from collections import Counter

from afresh.core.github_tree import File, Tree
from afresh.core.looks import Failed, Outcome, Refused
from afresh.fetchers.github_api import GithubApi, Listing

_MOST_QUESTIONS = 200


async def by_levels(
    api: GithubApi, name: str, commit: str, path: str, most_files: int
) -> tuple[Tree, str | None] | Refused | Failed:
    """All files at or below `path`, and why some are missing; a folder that is still too large is opened."""
    files: dict[str, File] = {}
    left_out: Counter[str] = Counter()
    folders, asked, cut = [("", commit, False)], 0, False
    while folders and asked < _MOST_QUESTIONS and len(files) <= most_files:
        folder, tree, whole = folders.pop()
        below = f"{folder}/" if folder else ""
        listing = await api.tree(name, tree, below=below, whole=whole)
        if not isinstance(listing, Listing):
            return _trouble(listing)
        asked += 1
        if listing.tree.truncated and whole:
            folders.append((folder, tree, False))
            continue
        files.update((each.path, each) for each in listing.tree.files if is_at(each.path, path))
        left_out.update(listing.tree.left_out)
        if not whole:
            near = (each for each in listing.tree.folders if is_at(each[0], path) or is_at(path, each[0]))
            folders.extend((each, its, True) for each, its in near)
            cut = cut or listing.tree.truncated
    found = Tree(id=commit, files=tuple(files.values()), folders=(), left_out=left_out)
    many = f"{name} has more files than can be listed; {len(files):,} are, after {asked} questions"
    return found, many if folders or cut else None


def is_at(path: str, folder: str) -> bool:
    """Whether a path is a folder or stands below it; "" is the root, above all."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def _trouble(listing: object) -> Refused | Failed:
    if isinstance(listing, Refused | Failed):
        return listing
    return Failed(outcome=Outcome.FAILED, reason="a folder was gone before it was listed")
