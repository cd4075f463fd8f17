"""Run git against a remote repository, ignoring the settings of the user and of the repository."""

import asyncio
import os
import re
import shlex
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from urllib.parse import unquote_to_bytes

from afresh.config.sources import GitSettings, NetworkSettings
from afresh.dataclass import dataclass, field
from afresh.errors import SourceError
from afresh.files import replace_whole
from afresh.sources.git.address import ANONYMOUS, HOW_TO_SIGN_IN, GitAddress, GitState, RefKind, patterns_for, state_of
from afresh.sources.git.process import GitCall, GitError, output_of, private_folder
from afresh.sources.web.client import not_allowed
from afresh.sources.web.guard import AddressPolicy, Resolve, resolve_here
from afresh.text.redact import mask_secrets, one_line

TOKEN = "AFRESH_GIT_TOKEN"  # noqa: S105 - the name of the variable
# Variables that git gets: the user, and the places of keys and certificates, but no settings.
_PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"),
    *("SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS", "DBUS_SESSION_BUS_ADDRESS"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
)
# Variables that give no access to keys. HOME is set to a folder that does not exist: without it, curl would use
# the home folder of the account.
_ANONYMOUS = ("PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH")
# Errors in old commits that do no harm, because nothing is checked out.
_HARMLESS = ("badTimezone", "missingSpaceBeforeDate", "zeroPaddedFilemode", "missingEmail", "badDate")
_HELPER = f"!f() {{ printf 'username=x-access-token\\npassword=%s\\n' \"${TOKEN}\"; }}; f"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitOptions(GitSettings):
    network: NetworkSettings = field(default_factory=NetworkSettings)
    max_file_bytes: int = 10 * 1024**2
    policy: AddressPolicy = field(default_factory=AddressPolicy)
    anonymous: bool = False  # use none of the operator's keys: no helper, token, agent, .netrc or ssh key


def environment(address: GitAddress, options: GitOptions, pins: Sequence[str], settings_file: str) -> dict[str, str]:
    """Return the environment of a git process that may connect only to the IP addresses in `pins`."""
    passed = _ANONYMOUS if options.anonymous else _PASSED
    made = {name: value for name in passed if (value := os.environ.get(name))}
    made |= {"HOME": os.devnull} if options.anonymous else {}
    made |= {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": settings_file,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_ALLOW_PROTOCOL": address.scheme,  # takes precedence over all settings
        "GIT_SSH_COMMAND": "false" if options.anonymous else _ssh(address, options, pins),
    }
    if _has_token(address, options):
        made[TOKEN] = options.token or ""
    settings = _settings(address, options, pins)
    made["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (key, value) in enumerate(settings):
        made[f"GIT_CONFIG_KEY_{number}"] = key
        made[f"GIT_CONFIG_VALUE_{number}"] = value
    return made


def served_settings(address: GitAddress) -> bytes:
    """Return settings that let git read a local repository of any owner, and fetch single files from it."""
    path = unquote_to_bytes(address.path)
    path = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'[safe]\n\tdirectory = "%s"\n[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n' % path


def _settings(address: GitAddress, options: GitOptions, pins: Sequence[str]) -> Sequence[tuple[str, str]]:
    """Return the git settings for the environment, which take precedence over settings in files."""
    made = [
        ("protocol.allow", "never"),
        (f"protocol.{address.scheme}.allow", "always"),
        ("core.hooksPath", os.devnull),
        ("core.fsmonitor", "false"),
        ("core.alternateRefsCommand", "true"),
        ("core.bigFileThreshold", str(options.max_file_bytes)),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("submodule.recurse", "false"),
        ("fetch.recurseSubmodules", "false"),
        ("fetch.writeCommitGraph", "false"),
        ("fetch.fsckObjects", "true"),
        ("transfer.fsckObjects", "true"),
        ("transfer.bundleURI", "false"),
        ("http.followRedirects", "false"),
        ("http.proxy", ""),
        ("http.sslVerify", "true"),
        ("http.userAgent", options.network.agent),
        ("http.lowSpeedLimit", "1000"),
        ("http.lowSpeedTime", "30"),
        ("ssh.variant", "ssh"),
        ("credential.helper", ""),
    ]
    made += [(f"fetch.fsck.{fault}", "ignore") for fault in _HARMLESS]
    if options.credential_helper and not options.anonymous:
        made.append(("credential.helper", options.credential_helper))
    if _has_token(address, options):
        made.append((f"credential.https://{options.token_host}.helper", _HELPER))
    place = address.connects_to
    if pins and place and address.scheme in ("https", "http") and place[0] not in pins:
        listed = ",".join(f"[{each}]" if ":" in each else each for each in pins)
        made.append(("http.curloptResolve", f"{place[0]}:{place[1]}:{listed}"))
    return made


def _has_token(address: GitAddress, options: GitOptions) -> bool:
    if options.anonymous or not options.token:
        return False
    return address.scheme == "https" and address.host == options.token_host


def _ssh(address: GitAddress, options: GitOptions, pins: Sequence[str]) -> str:
    """Return an ssh command that never prompts or forwards and connects only to the first address in `pins`."""
    given = {
        "BatchMode": "yes",
        "ConnectTimeout": str(max(1, round(options.network.connect_seconds))),
        "ServerAliveInterval": "15",
        "ServerAliveCountMax": "2",
        "ControlMaster": "no",
        "ControlPath": "none",
        "ForwardAgent": "no",
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
    }
    if pins and address.scheme == "ssh":
        given["HostName"] = pins[0]
        given["HostKeyAlias"] = f"[{address.host}]:{address.port}" if address.port else address.host
    return shlex.join(["ssh", *(f"-o{name}={value}" for name, value in given.items())])


_COMPLAINTS = (
    (
        r"Authentication failed|could not read (?:Username|Password)|terminal prompts disabled"
        r"|Permission denied \(|returned error: 40[13]",
        f"the repository is private or does not exist: {HOW_TO_SIGN_IN}",
    ),
    (r"Host key verification failed", "the ssh key of the host is unknown: connect once with ssh to accept it"),
    (r"returned error: 30\d|from redirection", "the repository moved: use its new URL (does it end in .git?)"),
    (r"returned error: 404|[Rr]epository .*not found|does not appear to be a git repo", "there is no such repository"),
    (r"not our ref|no such remote ref|unadvertised object", "the repository does not have this commit (any more)"),
    (r"died of signal 25|File size limit exceeded|File too large", "the download is larger than git.max_fetch_bytes"),
    (r"[Oo]ut of memory|No space left", "not enough memory or disk space for the download"),
    (r"SSL certificate|certificate verif", "the TLS certificate of the host is not valid"),
    (r"Operation too slow|timed out|Connection timed out", "the host does not respond, or is too slow"),
    (r"Failed to connect|Connection refused|Could not connect|Empty reply", "no connection to the host"),
    (r"returned error: 5\d\d", "the host answered with a server error"),
    (
        r"RPC failed|hung up|early EOF|unexpected disconnect|Connection reset|Broken pipe|transfer closed",
        "the connection was lost",
    ),
    (r"dumb http", "the host serves the repository over the dumb HTTP protocol, which is not supported"),
)
_ID = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
# Messages of git about a damaged clone; those of the remote begin with `remote: …`.
_DAMAGE = re.compile(
    r"^(?!remote:).*(?:not a git repository:|bad object|unknown object type|packfile|corrupt|loose object"
    r"|inflate|unable to (?:read|parse)|index file|bad config|unresolved deltas)",
    re.MULTILINE,
)


class GitRemote:
    def __init__(
        self, address: GitAddress, options: GitOptions, folder: Path, *, resolve: Resolve = resolve_here
    ) -> None:
        self.address = address
        self.options = options
        self._folder = folder  # contains the clones and a settings file; git runs here if there is no clone
        self._resolve = resolve
        self._pins: Sequence[str] | None = None

    async def state(self) -> GitState:
        """Ask the remote for the commit of the ref; a full commit id needs no request."""
        ref = self.address.ref
        if self.address.commit:
            return GitState(commit=self.address.commit, kind=RefKind.COMMIT)
        asked = ("-c", "protocol.version=0", "ls-remote", "--symref", "--", self.address.remote)
        answer = await self.ask((*asked, *patterns_for(ref)), self._folder, self.options.network.timeout_seconds)
        try:
            return state_of(answer, ref)
        except SourceError as error:
            raise GitError(f"{self.address.url}: {error}") from None

    async def ask(
        self, args: Sequence[str], folder: Path, seconds: float, stdin: bytes = b"", locks: tuple[int, ...] = ()
    ) -> bytes:
        """Run git against the remote and return its output; raise GitError if it fails or may not connect."""
        if self.options.anonymous and self.address.scheme == "ssh":
            raise GitError(f"{self.address.url}: ssh needs a key; {ANONYMOUS}")
        if self._pins is None:
            place = self.address.connects_to
            self._pins = await self._allowed(*place) if place else ()
        private_folder(self._folder)
        call = GitCall(
            args=args,
            env=self._environment(self._pins, self._settings_file())
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
            output = str(error)
            words = describe_error(output)
            known = words in {each for _, each in _COMPLAINTS} and not _DAMAGE.search(output)
            if self.options.anonymous:
                words = words.replace(HOW_TO_SIGN_IN, ANONYMOUS)
            raise GitError(
                f"{self.address.url}: {words}",
                late=error.late,
                explained=known or error.late,
                named=frozenset(_ID.findall(output)),
            ) from None

    def offline(self) -> dict[str, str]:
        return self._environment((), os.devnull) | {"GIT_ALLOW_PROTOCOL": "none"}

    def _environment(self, pins: Sequence[str], settings_file: str) -> dict[str, str]:
        return environment(self.address, self.options, pins, settings_file) | {
            "GIT_CEILING_DIRECTORIES": str(self._folder.parent)
        }

    def _settings_file(self) -> str:
        """Return the path of a settings file for git; the file is empty unless the repository is local."""
        if self.address.scheme != "file":
            return os.devnull
        data = served_settings(self.address)
        file = self._folder / f"{blake2b(data, digest_size=8).hexdigest()}.settings"
        if not file.exists():
            replace_whole(file, data)
        return str(file)

    async def _allowed(self, host: str, port: int) -> Sequence[str]:
        """Return the IP addresses of the host that git may connect to; raise GitError if there are none."""
        policy = self.options.policy
        try:
            async with asyncio.timeout(self.options.network.connect_seconds):
                found = await self._resolve(host, port)
        except TimeoutError:
            raise GitError(f"the name {host} was not resolved in time", late=True) from None
        except OSError:
            raise GitError(f"the name {host} cannot be resolved") from None
        refusals = {ip: policy.check(ip, host, port) for ip in found}
        if not (allowed := [ip for ip, refusal in refusals.items() if refusal is None]):
            raise GitError(not_allowed(host, next(iter(refusals.values()), None) or "no address"))
        if self.address.scheme == "http" and not all(policy.names(ip, host, port) for ip in allowed):
            raise GitError(
                f"{self.address.url} would be read over unencrypted http, where others may change its content: "
                f'use https, or add "{host}" to network.allow'
            )
        return allowed


def describe_error(complaint: str) -> str:
    """Return an error message of git as one line, without secrets."""
    for pattern, words in _COMPLAINTS:
        if re.search(pattern, complaint):
            return words
    lines = [line for line in complaint.splitlines() if line.startswith(("fatal:", "error:"))]
    line = (lines or complaint.splitlines() or [""])[0]
    return mask_secrets(one_line(re.sub(r"^(?:fatal|error): ", "", line)))[:300]
