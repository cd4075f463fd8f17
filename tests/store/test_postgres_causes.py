"""A PostgreSQL that cannot be used: the message names the cause and the fix, and never the password."""

import socket

import asyncpg
import pytest

from afresh.cli import main
from afresh.errors import StoreError
from afresh.store.open import open_store
from afresh.store.postgres import explain

NAME = "postgresql://me:***@db.internal:5432/afresh"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(111, "Connect call failed"), "refuses connections"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1)"), "refuses connections"),
        (socket.gaierror(-2, "Name or service not known"), "names a host that is unknown"),
        (TimeoutError(), "does not answer in time"),
        (FileNotFoundError(2, "No such file or directory"), "names a socket that does not exist"),
        (asyncpg.InvalidPasswordError("password authentication failed"), "rejects the password"),
        (asyncpg.InvalidAuthorizationSpecificationError("no pg_hba.conf entry"), "rejects this user"),
        (asyncpg.InvalidCatalogNameError("database does not exist"), "names a database that does not exist"),
    ],
)
def test_F140_U5_every_cause_is_named_with_what_to_do(error: BaseException, words: str) -> None:
    message = str(explain(error, NAME))
    assert message.startswith(f"the store {NAME} {words}")
    assert ";" in message, "what to do comes after the cause"


def test_F140_U5_a_command_ends_with_one_sentence_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--store", "postgresql://me:hush@127.0.0.1:1/afresh"]) == 2
    printed = capsys.readouterr().err
    assert "refuses connections" in printed
    assert "hush" not in printed
    assert "Traceback" not in printed
    assert printed.count("\n") == 1


async def test_F140_U5_a_store_that_is_not_there_is_a_store_error() -> None:
    with pytest.raises(StoreError, match="refuses connections"):
        await open_store("postgresql://me:hush@127.0.0.1:1/afresh")
