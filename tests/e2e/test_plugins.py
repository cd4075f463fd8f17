"""The plug-in door: a package that adds a source kind and a sink is installed, and no file of afresh changes."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest

from afresh import plugins
from afresh.errors import UsageError
from afresh.sources.detect import recognise, recognise_on_the_web, recognise_remote

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "plugin"
SETTINGS = """\
store: {{url: "sqlite:///{folder}/kb.db"}}
embedding: {{provider: none}}
plugins: {{mbox: {{max_messages: 2}}}}
sinks: {{lines: {{kind: jsonl, path: "{folder}/pages.jsonl"}}}}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example is installed, by pip where it can build without a network."""
    source, target = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, source)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    made = subprocess.run([*pip, "--target", target, source], capture_output=True, text=True, check=False)
    if made.returncode:  # no pip or no setuptools here: what they would have written
        shutil.copytree(source / "afresh_mail", target / "afresh_mail", dirs_exist_ok=True)
        project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
        write_package(target, project["name"], project["entry-points"])
    return target


def write_package(target: Path, name: str, groups: dict[str, dict[str, str]]) -> None:
    """Write the metadata of an installed package."""
    folder = target / f"{name.replace('-', '_')}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in groups.items()
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines), "utf-8")


@pytest.fixture
def on_path(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same for this process."""
    monkeypatch.syspath_prepend(installed)
    forget()
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    yield installed
    monkeypatch.undo()
    forget()


def forget() -> None:
    plugins.installed_plugins.cache_clear()
    plugins._packages.cache_clear()


def afresh(folder: Path, *words: str, site: Path) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join((str(site), str(ROOT / "src")))
    return subprocess.run(
        [sys.executable, "-m", "afresh", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def write_mailbox(file: Path, *texts: str) -> None:
    mails = []
    for number, text in enumerate(texts):
        mail = EmailMessage()
        mail["Subject"], mail["From"], mail["Message-ID"] = (f"Mail {number}", "ana@example.org", f"<{number}@x>")
        mail.set_content(text)
        mails.append(f"From ana@example.org Mon Jan  1 00:00:00 2024\n{mail.as_string()}\n")
    file.write_text("".join(mails), "utf-8")


def test_an_installed_package_adds_a_source_kind_and_a_sink(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "afresh.yaml").write_text(SETTINGS.format(folder=tmp_path), "utf-8")
    write_mailbox(tmp_path / "inbox.mbox", "The release is on Friday.", "Lunch is at noon.", "One too many.")
    crawled = afresh(tmp_path, "crawl", "mbox:inbox.mbox", "--json", site=installed)
    assert crawled.returncode == 0, crawled.stderr + crawled.stdout
    assert json.loads(crawled.stdout)["new"] == 2, crawled.stdout
    found = afresh(tmp_path, "search", "release", "--json", site=installed)
    assert "inbox.mbox/%3C0%40x%3E" in found.stdout, found.stdout
    listed = afresh(tmp_path, "sources", "--json", site=installed)
    assert [(each["kind"], each["name"]) for each in json.loads(listed.stdout)] == [("mbox", "inbox")]
    synced = afresh(tmp_path, "sync", site=installed)
    assert synced.returncode == 0, synced.stderr + synced.stdout
    assert "The release is on Friday." in (tmp_path / "pages.jsonl").read_text("utf-8")
    write_mailbox(tmp_path / "inbox.mbox", "The release is on Monday.", "Lunch is at noon.")
    refreshed = json.loads(afresh(tmp_path, "refresh", "--json", site=installed).stdout)
    assert (refreshed["changed"], refreshed["not_modified"]) == (1, 1)
    afresh(tmp_path, "sync", site=installed)
    lines = (tmp_path / "pages.jsonl").read_text("utf-8")
    assert "on Monday" in lines
    assert "on Friday" not in lines
    assert len(lines.splitlines()) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("plugins: {mbox: {max_messages: 0}}", "plugins.mbox.max_messages: expected a whole number from 1"),
        ("plugins: {mbox: {max_mesages: 5}}", "unknown key plugins.mbox.max_mesages; did you mean max_messages?"),
        ("plugins: {imap: {host: x}}", "plugins.imap: there is no plug-in of this name with settings; installed: mbox"),
        ("sinks: {lines: {kind: jsonl}}", "sinks.lines.path is missing: kind: jsonl needs it"),
        ("sinks: {lines: {kind: jsnl}}", "got 'jsnl'; did you mean jsonl?"),
    ],
)
def test_settings_of_plugins_are_checked(installed: Path, tmp_path: Path, settings: str, words: str) -> None:
    (tmp_path / "afresh.yaml").write_text(settings, "utf-8")
    ended = afresh(tmp_path, "status", site=installed)
    assert ended.returncode == 2
    assert words in " ".join(ended.stderr.split())


def test_a_remote_caller_cannot_add_a_source_of_a_plugin(on_path: Path, tmp_path: Path) -> None:
    assert recognise(f"mbox:{tmp_path}/inbox.mbox").kind == "mbox"
    for ask in (lambda text: recognise_remote(text, [str(tmp_path)]), recognise_on_the_web):
        with pytest.raises(UsageError):
            ask(f"mbox:{tmp_path}/inbox.mbox")
    with pytest.raises(UsageError, match="added on the server itself"):
        recognise_remote(f"mbox:{tmp_path}/inbox.mbox", [str(tmp_path)])


def test_a_broken_plugin_is_named_and_breaks_nothing_else(installed: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "broken_one.py").write_text("import a_module_that_is_not_there\n", "utf-8")
    entry = {"wiki": "broken_one:WIKI"}
    write_package(site, "broken-one", {"afresh.sources": entry, "afresh.sinks": entry, "afresh.embedders": entry})
    (tmp_path / "afresh.yaml").write_text(SETTINGS.format(folder=tmp_path), "utf-8")
    write_mailbox(tmp_path / "inbox.mbox", "The release is on Friday.")
    both = Path(os.pathsep.join((str(site), str(installed))))
    assert afresh(tmp_path, "crawl", "mbox:inbox.mbox", site=both).returncode == 0
    assert "broken-one cannot be loaded" in afresh(tmp_path, "doctor", site=both).stdout
    (tmp_path / "afresh.yaml").write_text("sinks: {one: {kind: wiki}}", "utf-8")
    ended = afresh(tmp_path, "sync", site=both)
    assert ended.returncode == 2
    assert "the plug-in wiki (afresh.sinks) of the package broken-one cannot be loaded: ModuleNotFoundError" in (
        " ".join(ended.stderr.split())
    )


@pytest.mark.parametrize(
    ("code", "words"),
    [("import a_module_that_is_not_there", "cannot be loaded: ModuleNotFoundError"), ("WIKI = ()", "is not a Format")],
)
def test_a_broken_extractor_ends_a_crawl_before_its_files_are_read_as_plain_text(
    tmp_path: Path, code: str, words: str
) -> None:
    site, docs = tmp_path / "site", tmp_path / "docs"
    site.mkdir()
    docs.mkdir()
    (site / "broken_one.py").write_text(f"{code}\n", "utf-8")
    write_package(site, "broken-one", {"afresh.extractors": {"wiki": "broken_one:WIKI"}})
    (tmp_path / "afresh.yaml").write_text(SETTINGS.partition("plugins")[0].format(folder=tmp_path), "utf-8")
    (docs / "a.md").write_text("# A\n\nWords.\n", "utf-8")
    ended = afresh(tmp_path, "crawl", "docs", site=site)
    assert ended.returncode == 2, ended.stdout
    assert f"the plug-in wiki (afresh.extractors) of the package broken-one {words}" in " ".join(ended.stderr.split())
    assert "broken-one" in afresh(tmp_path, "doctor", site=site).stdout


MORE_PARTS = """
from afresh.extract.registry import Format
from afresh.model.fetch import Document

class Shout:
    def extract(self, body):
        return Document(title="Shout", markdown=body.data.decode().upper(), content_hash="1", links_hash="1")

FORMAT = Format("shout", Shout, names=(".shout",))

def embedder(settings, caller):
    return settings.named_model
"""


def test_an_installed_package_adds_an_extractor_and_an_embedder(tmp_path: Path) -> None:
    (tmp_path / "more_parts.py").write_text(MORE_PARTS, "utf-8")
    groups = {"afresh.extractors": {"shout": "more_parts:FORMAT"}, "afresh.embedders": {"mine": "more_parts:embedder"}}
    write_package(tmp_path, "more-parts", groups)
    code = (
        "from afresh.config.models import EmbeddingSettings as E; from afresh.models.choose import embedder_for\n"
        "from afresh.extract.registry import extract; from afresh.model.fetch import Body\n"
        "body = Body(url='file:///a/b.shout', data=b'hear me', media_type='')\n"
        "print(extract(body).markdown, embedder_for(E(provider='mine', model='m'), None))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT / "src")))}
    made = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert made.stdout == "HEAR ME m\n", made.stderr


def test_our_own_parts_are_entry_points_of_the_same_groups() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    assert declared == plugins.BUILT_IN
    for group, names in plugins.BUILT_IN.items():
        for name in names:
            assert plugins.load_plugin(group, name, object) is not None
