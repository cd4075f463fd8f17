"""A secret in every place where one can stand, and none of them in any log, message or answer."""

import asyncio
import json
import logging
from pathlib import Path

import pytest
from tests.e2e.inprocess import InProcess
from tests.fakes.servers import answer, serving
from tests.server.served import served

from afresh.cli import main
from afresh.config import load
from afresh.ops.logging import configure_logging
from afresh.testing import TinySite

SETTINGS = {
    "GIT__TOKEN": "hush-git",
    "GITHUB__TOKEN": "hush-github",
    "AI__API_KEY": "hush-ai",
    "EMBEDDING__API_KEY": "hush-embedding",
    "WEBHOOKS__OPS__SECRET": "hush-webhook",
    "WEBHOOKS__GITHUB__SECRET": "hush-push",
    "NOTIFY__TEAM__URL": "json://user:hush-notify@127.0.0.1:9/hush-notify",
    "SINKS__COPY__API_KEY": "hush-sink",
}
REFUSAL = json.dumps({"error": {"message": "Incorrect API key provided: hush-embedding. Bearer hush-header"}})


async def test_F111_P19_no_secret_of_any_place_is_reported_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("afresh.crawl.factory.ParserPool", InProcess)
    log_file, store = tmp_path / "afresh.log", f"sqlite:///{tmp_path / 'kb.db'}"
    async with serving({"/hook": answer(503)}) as wire:
        wire.routes["/v1/embeddings"] = answer(401, REFUSAL.encode())
        more = {
            "WEBHOOKS__OPS__URL": wire.url("/hook"),
            "EMBEDDING__PROVIDER": "openai",
            "EMBEDDING__MODEL": "made-up",
            "EMBEDDING__BASE_URL": wire.url("/v1"),
            "SINKS__COPY__KIND": "openai",
            "SINKS__COPY__STORE": "vs_1",
            "SINKS__COPY__SOURCES": "none",
            "SINKS__COPY__BASE_URL": wire.url("/v1"),
            "NETWORK__ALLOW": "127.0.0.1",
            "LOG__FILE": str(log_file),
            "LOG__LEVEL": "debug",
        }
        environment = {f"AFRESH_{name}": value for name, value in {**SETTINGS, **more}.items()}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with TinySite() as site:
            root = site.url.replace("http://", "http://me:hush-user@")
            site.put("/", "<h1>Root</h1><p>Harbors.</p><a href='/gone?api_key=hush-link&page=2'>x</a>")
            for command in (
                ["crawl", root, "--name", "docs"],
                ["crawl", f"{site.url}?access_token=hush-query", "--name", "other"],
                ["search", "harbors"],
                ["webhooks", "--send"],
                ["sync"],
                ["doctor"],
                ["config", "show"],
                ["status", "--store", "postgresql://me:hush-dsn@127.0.0.1:9/kb"],
                ["crawl", "postgresql://me:hush-dsn@db/kb"],
            ):
                place = [] if "--store" in command else ["--store", store]
                await asyncio.to_thread(main, [*command, *place, "--log-format", "json", "-vv"])
        config = load(None, environment, {"store.url": store}, tmp_path)
        with configure_logging(config, verbose=2, as_json=True):
            async with served(tmp_path / "kb.db", config=config, works=False) as client:
                signed = {"authorization": "Bearer hush-bearer", "x-hub-signature-256": "sha256=hush"}
                await client.ask("GET", "/api/v1/search?q=x&token=hush-asked", headers=signed)
                await client.ask("POST", "/api/v1/webhooks/github", headers=signed, data="{}")
                target = {"target": "https://me:hush-target@docs.example/?key=hush-target"}
                reported = await client.ask("POST", "/api/v1/sources", json=target)
                assert "hush" not in json.dumps(reported)
            logging.getLogger("aiohttp").error("password=hush-library")
    message = capfd.readouterr()
    lines = [json.loads(line) for line in message.err.splitlines() if line]
    assert len(lines) > 12
    assert all({"at", "level", "event"} <= set(line) for line in lines)
    everything = {"stderr": message.err, "stdout": message.out, "log.file": log_file.read_text("utf-8")}
    leaks = {(place, line[:300]) for place, text in everything.items() for line in text.splitlines() if "hush" in line}
    assert leaks == set()
    assert (message.err.count("***") > 8, everything["log.file"].count("***") > 1) == (True, True)
