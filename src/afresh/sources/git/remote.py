"""The far side of a repository: whether it may be asked, what it says, and its complaints in plain words."""

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path

from afresh.errors import SourceError
from afresh.sources.git.address import ANONYMOUS, HOW_TO_SIGN_IN, GitAddress
from afresh.sources.git.cache import private_folder
from afresh.sources.git.environment import GitOptions, environment, served_settings
from afresh.sources.git.process import Call, GitError, output_of
from afresh.sources.git.tree import GitState, RefKind, patterns_for, state_of
from afresh.sources.web.reach import Resolve, resolve_here
from afresh.sources.web.trouble import not_allowed
from afresh.text.redact import mask_secrets, one_line

_COMPLAINTS = (
    (
        r"Authentication failed|could not read (?:Username|Password)|terminal prompts disabled"
        r"|Permission denied \(|returned error: 40[13]",
        f"the repository is not open to everybody, or does not exist: {HOW_TO_SIGN_IN}",
    ),
    (
        r"Host key verification failed",
        "its ssh key is unknown: connect once by ssh, so that it is remembered",
    ),
    (
        r"returned error: 30\d|from redirection",
        "it moved: use the address that it leads to (does .git end it?)",
    ),
    (
        r"returned error: 404|[Rr]epository .*not found|does not appear to be a git repo",
        "there is no such repository",
    ),
    (
        r"not our ref|no such remote ref|unadvertised object",
        "the repository does not have this commit (any more)",
    ),
    (
        r"died of signal 25|File size limit exceeded|File too large",
        "what it sends is larger than git.max_fetch_bytes",
    ),
    (r"[Oo]ut of memory|No space left", "there is no room for what it sends"),
    (r"SSL certificate|certificate verif", "its TLS certificate is not valid"),
    (r"Operation too slow|timed out|Connection timed out", "it does not answer, or too slowly"),
    (r"Failed to connect|Connection refused|Could not connect|Empty reply", "no connection to it"),
    (r"returned error: 5\d\d", "it answers with an error of its own"),
    (
        r"RPC failed|hung up|early EOF|unexpected disconnect|Connection reset|Broken pipe|transfer closed",
        "the connection broke",
    ),
    (r"dumb http", "it is served as plain files, which git cannot read in part"),
)
_ID = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
# What git says of a clone that is not whole, unlike what the far side says of itself (`remote: …`).
_DAMAGE = re.compile(
    r"^(?!remote:).*(?:not a git repository:|bad object|unknown object type|packfile|corrupt|loose object"
    r"|inflate|unable to (?:read|parse)|index file|bad config|unresolved deltas)",
    re.MULTILINE,
)


class GitRemote:
    """A repository as it is asked over the network, or beside us on this machine."""

    def __init__(
        self, address: GitAddress, options: GitOptions, folder: Path, *, resolve: Resolve = resolve_here
    ) -> None:
        self.address = address
        self.options = options
        self._folder = folder  # of clones: where settings lie and calls run that need no clone
        self._resolve = resolve
        self._pins: Sequence[str] | None = None

    async def state(self) -> GitState:
        """The commit that is meant now, by one question; a whole commit id answers itself."""
        ref = self.address.ref
        if ref is not None and self.address.is_pinned:
            return GitState(commit=ref, kind=RefKind.COMMIT)
        args = (
            "-c",
            "protocol.version=0",
            "ls-remote",
            "--symref",
            "--",
            self.address.remote,
            *patterns_for(ref),
        )
        try:
            return state_of(await self.ask(args, self._folder, self.options.answer_seconds), ref)
        except GitError:
            raise
        except SourceError as error:
            raise GitError(f"{self.address.url}: {error}") from None

    async def ask(
        self,
        args: Sequence[str],
        folder: Path,
        seconds: float,
        stdin: bytes = b"",
        locks: tuple[int, ...] = (),
    ) -> bytes:
        """A call of git that reaches the repository, after its host was checked."""
        if self.options.anonymous and self.address.scheme == "ssh":
            raise GitError(f"{self.address.url}: ssh needs a key; {ANONYMOUS}")
        pins = await self._checked()
        private_folder(self._folder)
        call = Call(
            args=args,
            env=self._environment(pins, self._settings_file())
            | ({} if folder == self._folder else {"GIT_DIR": str(folder)}),
            folder=str(folder),
            seconds=seconds,
            stdin=stdin,
            largest_file=self.options.max_fetch_bytes,
            kept_open=locks,
        )
        try:
            return await output_of(call)
        except GitError as error:
            words = in_words(str(error))
            if self.options.anonymous:
                words = words.replace(HOW_TO_SIGN_IN, ANONYMOUS)
            known = in_words(str(error)) in {each for _, each in _COMPLAINTS} and not _DAMAGE.search(
                str(error)
            )
            raise GitError(
                f"{self.address.url}: {words}",
                late=error.late,
                explained=known or error.late,
                named=frozenset(_ID.findall(str(error))),
            ) from None

    def offline(self) -> dict[str, str]:
        """The variables of calls that reach nothing."""
        return self._environment((), os.devnull) | {"GIT_ALLOW_PROTOCOL": "none"}

    def _environment(self, pins: Sequence[str], settings_file: str) -> dict[str, str]:
        return environment(self.address, self.options, pins, settings_file) | {
            "GIT_CEILING_DIRECTORIES": str(self._folder.parent)
        }

    def _settings_file(self) -> str:
        """Settings for the far side too, which runs on this machine where the repository is local."""
        served = served_settings(self.address)
        if not served:
            return os.devnull
        from hashlib import blake2b

        data = os.fsencode(served)
        file = self._folder / f"{blake2b(data, digest_size=8).hexdigest()}.settings"
        if not file.exists():
            fresh = file.with_suffix(f".{os.getpid()}")
            fresh.write_bytes(data)
            fresh.replace(file)
        return str(file)

    async def _checked(self) -> Sequence[str]:
        """The addresses of the host that may be connected to; git is held to them."""
        place = self.address.connects_to
        if place is None:
            return ()
        if self._pins is None:
            self._pins = await self._allowed(*place)
        return self._pins

    async def _allowed(self, host: str, port: int) -> Sequence[str]:
        policy = self.options.policy
        try:
            async with asyncio.timeout(self.options.connect_seconds):
                found = await self._resolve(host, port)
        except TimeoutError:
            raise GitError(f"the name {host} was not resolved in time", late=True) from None
        except OSError:
            raise GitError(f"the name {host} cannot be resolved") from None
        refusals = {ip: policy.check(ip, host, port) for ip in found}
        allowed = [ip for ip, refusal in refusals.items() if refusal is None]
        if not allowed:
            raise GitError(not_allowed(host, next(iter(refusals.values()), None) or "no address"))
        if self.address.scheme == "http" and not all(policy.names(ip, host, port) for ip in allowed):
            raise GitError(
                f"{self.address.url} would be read over plain http, where anybody may change it: "
                f'use https, or add "{host}" to network.allow'
            )
        return allowed


def in_words(complaint: str) -> str:
    """What git complains of, on one line and without secrets."""
    for pattern, words in _COMPLAINTS:
        if re.search(pattern, complaint):
            return words
    lines = [line for line in complaint.splitlines() if line.startswith(("fatal:", "error:"))]
    told = (lines or complaint.splitlines() or [""])[0]
    return mask_secrets(one_line(re.sub(r"^(?:fatal|error): ", "", told)))[:300]
