"""Settings that name a path, a key, an endpoint or a program: the operator's alone, whoever asks."""

import json
import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.e2e.inprocess import InProcess
from tests.e2e.library import opened, rows, settings
from tests.fakes.chat_server import ChatServer
from tests.server.served import Client as Server
from tests.server.served import served

from afresh.app import utc_now
from afresh.config import forms
from afresh.config.forms import host_name, network_place, origin, secret, service
from afresh.config.layers import source_settings
from afresh.config.spec import SettingSpec
from afresh.config.tree import NAMED
from afresh.config.tree import settings as all_settings
from afresh.errors import ConfigError
from afresh.files import read_small_file
from afresh.model.records import RunMode, RunState
from afresh.models import completions
from afresh.testing import TinySite

API = "/api/v1"
FORMS = (*(forms.file, forms.key, forms.api_url, forms.store_url), *(network_place, service, secret, host_name, origin))
NAMES = re.compile(
    r"(^|_)(file|path|dir|url|key|token|secret|helper|endpoint|host|hosts|origins|roots|channel|allow)(_|$)"
)


def every_setting() -> Iterator[tuple[str, str, SettingSpec]]:
    """Section, key and spec of all there is to set."""
    for (section, key), spec in all_settings().items():
        yield section, key, spec
    for section, named in NAMED.items():
        for key, spec in named.specs().items():
            yield section, key, spec


def is_dangerous(key: str, spec: SettingSpec) -> bool:
    """Whether its value is a path, a key, an endpoint or a program, as far as name and form tell."""
    if spec.kind not in ("text", "list") or spec.choices:
        return False
    return spec.secret or spec.form in FORMS or bool(NAMES.search(key))


DANGEROUS = sorted({key for _, key, spec in every_setting() if is_dangerous(key, spec)})


def test_S1_F114_every_setting_that_names_a_place_a_key_or_a_program_is_the_operators() -> None:
    unmarked = [
        f"{s}.{key}" for s, key, spec in every_setting() if is_dangerous(key, spec) and not spec.is_operator_only
    ]
    assert unmarked == []
    assert {"prompt_file", "executable_path", "credential_helper", "token", "base_url", "allow"} <= set(DANGEROUS)
    assert not [name for name, (_, _, spec) in source_settings().items() if spec.is_operator_only]


@pytest.mark.parametrize("key", [*DANGEROUS, "links.prompt_file", "PROMPT_FILE"])
def test_S1_F114_no_settings_of_a_source_hold_one(key: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape(key)):
        settings(tmp_path / "kb.db").with_overrides({key: "/proc/self/environ"})


async def refused(client: Server, method: str, path: str, key: str, **more: Any) -> None:
    status, content = await client.ask(method, path, **more)
    assert 400 <= status < 500, (method, path, key, status, content)
    assert key in content["detail"]


async def test_S1_F114_no_face_takes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    site, value = "https://docs.example.org/", "/proc/self/environ"
    async with served(tmp_path / "kb.db", works=False) as client:
        new = {"target": site, "name": "docs", "run": False}
        status, source = await client.ask("POST", f"{API}/sources", json=new)
        assert status == 201, source
        number = source["id"]
        for key in DANGEROUS:
            given = {"settings": {key: value}}
            await refused(client, "POST", f"{API}/sources", key, json={**new, **given})
            await refused(client, "POST", f"{API}/sources", key, json={**new, "name": "other", "again": True, **given})
            await refused(client, "POST", f"{API}/preview", key, json={"target": site, **given})
            await refused(client, "PATCH", f"{API}/sources/{number}", key, json=given)
            body = {"schedule": "@daily", key: value}
            await refused(client, "PUT", f"{API}/sources/{number}/schedule", key, json=body)
            form = {key: value, "max_pages": "7"}
            await client.session.post(f"/sources/{number}/settings", data=form, allow_redirects=False)
        async with Client(streamable_http_client(f"{client.server.url}/mcp")) as agent:
            for tool in (await agent.list_tools()).tools:
                assert not set(DANGEROUS) & set(tool.input_schema["properties"]) - {"url"}, tool.name
            for key in set(DANGEROUS) - {"url"}:
                await agent.call_tool("scrape_docs", {"url": site, "library": "docs", key: value})
    [stored] = rows(tmp_path / "kb.db", "select rules, policy from sources")
    assert {**json.loads(stored[0]), **json.loads(stored[1])} == {"max_pages": 7}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """A model on loopback; pages are read in this process."""
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    with ChatServer() as server:
        yield server


def asking(model: ChatServer, **more: object) -> Mapping[str, object]:
    return {"ai.provider": "openai", "ai.model": "small", "ai.base_url": model.base_url, **more}


async def test_S1_F114_one_that_a_store_has_from_before_is_ignored_and_goes_with_the_next_change(
    tmp_path: Path, site: TinySite, model: ChatServer
) -> None:
    store, leaked = tmp_path / "kb.db", tmp_path / "leaked"
    leaked.write_text("the password of the operator")
    async with opened(store, asking(model)) as kb:
        await kb.runs.crawl(site.url, name="docs", policy={"keywords": {"install": 1.0}}, queue=True)
        own = json.dumps({"keywords": {"install": 1.0}, "prompt_file": str(leaked)})
        with sqlite3.connect(store) as database:
            database.execute("update sources set policy = ?", (own,))
        database.close()
    async with opened(store, asking(model)) as kb:
        assert await kb.runs.work(once=True)
        assert model.asked, "links are scored"
        assert not [asked for asked in model.asked if "password" in asked.system]
        [source] = await kb.sources.all()
        assert "prompt_file" not in source.policy
        await kb.sources.change(source, settings={"max_pages": 9})
    assert "prompt_file" not in str(rows(store, "select rules, policy from sources"))


async def test_S7_F182_patterns_beyond_the_bound_that_a_store_has_from_before_end_a_run(
    tmp_path: Path, site: TinySite
) -> None:
    store = tmp_path / "kb.db"
    async with opened(store, {}) as kb:
        run = (await kb.runs.crawl(site.url, name="docs", rules={"exclude": ["*.pdf"]}, queue=True)).run
        with sqlite3.connect(store) as database:
            database.execute("update sources set rules = ?", (json.dumps({"exclude": ["*" + "a" * 900]}),))
        database.close()
    async with opened(store, {}) as kb:
        assert not await kb.runs.work(once=True)
        ended = await kb.runs.get(run)
        assert ended.state is RunState.FAILED
        assert "exclude: expected patterns of at most 200 characters, got one of 901" in str(ended.error)


@pytest.mark.parametrize("interrupted", [False, True])
async def test_S1_F115_a_configuration_error_ends_a_run_with_its_reason(
    tmp_path: Path, site: TinySite, model: ChatServer, *, interrupted: bool
) -> None:
    """Also one that a server was working on when it died."""
    store = tmp_path / "kb.db"
    wrong = asking(model, **{"links.prompt_file": "/nowhere/links.md"})
    async with opened(store, wrong) as kb:
        run = (await kb.runs.crawl(site.url, name="docs", policy={"keywords": {"install": 1.0}}, queue=True)).run
        if interrupted:
            [source] = await kb.sources.all()
            began = kb._context.store.runs.start(source.id, RunMode.CRAWL, full=False, worker="dead", now=utc_now())
            assert (await began)[0].id == run
    async with opened(store, wrong) as kb:
        assert not await kb.runs.work(once=True)
        ended = await kb.runs.get(run)
        assert (ended.state, "links.prompt_file" in str(ended.error)) == (RunState.FAILED, True)
        assert not [each for each in await kb._context.store.runs.live() if each.id == run]
    async with opened(store, asking(model)) as kb:  # set right, it can be read
        await kb.runs.refresh(["docs"], queue=True)
        assert await kb.runs.work(once=True)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "process", "large", "link to a device"])
def test_S1_F115_a_prompt_is_read_from_an_ordinary_file_alone(tmp_path: Path, kind: str) -> None:
    own = tmp_path / "prompt.md"
    match kind:
        case "pipe":
            os.mkfifo(own)
        case "device":
            own = Path("/dev/zero")
        case "process":
            own = Path("/proc/self/environ")
        case "large":
            own.write_bytes(b"x" * 100_001)
        case "link to a device":
            own.symlink_to("/dev/ptmx")
        case _:
            own.mkdir()
    with pytest.raises(ConfigError, match=r"links\.prompt_file"):
        completions.read_prompt("links.md", str(own), "links.prompt_file")


async def test_S1_prompts_are_read_off_the_loop(
    tmp_path: Path, site: TinySite, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, threads = tmp_path / "prompt.md", []
    own.write_text("Score these.")

    def noted(path: Path, most: int) -> bytes:
        threads.append(threading.current_thread())
        return read_small_file(path, most)

    monkeypatch.setattr(completions, "read_small_file", noted)
    async with opened(tmp_path / "kb.db", asking(model, **{"links.prompt_file": str(own)})) as kb:
        await kb.runs.crawl(site.url, name="docs", policy={"keywords": {"install": 1.0}})
    assert {asked.system for asked in model.asked} == {"Score these."}
    assert threads
    assert threading.main_thread() not in threads
