"""A repository as a GitHub server holds it: branches and tags, commits, former names, a wiki."""

import re
from collections.abc import Mapping
from typing import Any

from tests.fakes.git_objects import Objects, Pushed, commit_id


class HostedRepository:
    """What a repository holds, and what its server says of it."""

    def __init__(self, name: str, *, private: bool = False, default: str = "main") -> None:
        self.name = name
        self.number = 1_296_269
        self.private = private
        self.default = default
        self.has_wiki = True  # GitHub's default, whether or not there are pages
        self.former: set[str] = set()
        self.pages: dict[str, str] = {}  # of the wiki
        self.objects = Objects({}, {})
        self.refs: dict[str, str] = {}  # branches and tags to their commits
        self._trees: dict[str, str] = {}  # commits to their trees
        self._parents: dict[str, str | None] = {}

    def push(self, files: Mapping[str, Pushed], branch: str | None = None) -> str:
        """A commit that holds exactly these files; its id."""
        branch = branch or self.default
        tree, parent = self.objects.add(files), self.refs.get(branch)
        commit = commit_id(tree, parent, len(self._trees))
        self._trees[commit], self._parents[commit] = tree, parent
        self.refs[branch] = commit
        return commit

    def rename_branch(self, old: str, new: str) -> None:
        """Give a branch another name; the default one stays the default one."""
        self.refs[new] = self.refs.pop(old)
        if self.default == old:
            self.default = new

    def rename(self, name: str) -> None:
        """Give it another name."""
        self.former.add(self.name.lower())
        self.name = name

    def facts(self, web_url: str) -> dict[str, Any]:
        """What `repos/owner/repo` says."""
        return {
            "id": self.number,
            "name": self.name.partition("/")[2],
            "full_name": self.name,
            "private": self.private,
            "html_url": f"{web_url}/{self.name}",
            "has_wiki": self.has_wiki,
            "default_branch": self.default,
        }

    def listing(self, ref: str, *, whole: bool, most: int) -> dict[str, Any] | int:
        """What `git/trees/ref` says, or the status that says why not."""
        if not self.refs:
            return 409
        commit = self.refs.get(self.default if ref == "HEAD" else ref, ref)
        tree = self._trees.get(commit, commit)
        if tree not in self.objects.trees:
            return 404
        found = self.objects.walk(tree, whole=whole)
        entries = [
            {"path": path, "mode": entry.mode.zfill(6), "type": entry.type, "sha": entry.id}
            | ({"size": entry.size} if entry.type == "blob" else {})
            for path, entry in found[:most]
        ]
        url = f"{self.name}/git/trees/{commit}"
        return {"sha": commit, "url": url, "tree": entries, "truncated": len(found) > most}

    def raw(self, path: str, *, lagging: bool) -> bytes | None:
        """The file that `owner/repo/ref/path` names; a lagging server still shows a branch as it was."""
        found = re.fullmatch(r"([^/]+/[^/]+)/(.+)", path, re.DOTALL)
        if found is None or found[1].lower() not in {self.name.lower(), *self.former}:
            return None
        known = {**self.refs, "HEAD": self.refs.get(self.default, "")}
        if lagging:
            known = {ref: self._parents.get(commit) or commit for ref, commit in known.items()}
        known |= {commit: commit for commit in self._trees}
        for ref in sorted(known, key=len, reverse=True):
            if found[2].startswith(f"{ref}/") and known[ref] in self._trees:
                return self.objects.file(self._trees[known[ref]], found[2][len(ref) + 1 :])
        return None
