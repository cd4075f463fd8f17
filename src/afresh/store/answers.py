"""Answers to requests with a name of their own, for a day."""

from datetime import datetime

from afresh.core.answers import GIVEN_UP, KEPT, KeptAnswer
from afresh.store.dialect import Database


class Answers:
    """Who asks the same again is given the same answer."""

    db: Database

    async def begin_answer(self, caller: str, name: str, asked: str, now: datetime) -> KeptAnswer | None:
        """What is known of a request; None: it is the caller's to answer."""
        async with self.db.write() as tx:
            await tx.run("forget_replies", before=now - KEPT)
            key = {"caller": caller, "name": name}
            if await tx.one("begin_reply", **key, asked=asked, now=now):
                return None
            if await tx.one("begin_reply_again", **key, asked=asked, now=now, since=now - GIVEN_UP):
                return None
            row = await tx.one("kept_reply", **key)
            assert row is not None  # noqa: S101 - the insert met it
            return KeptAnswer(row["asked"], row["status_code"], row["location"], row["body"])

    async def renew_answer(self, caller: str, name: str, began: datetime, now: datetime) -> bool:
        """Say that what began then goes on; False if others began anew."""
        async with self.db.write() as tx:
            return bool(await tx.one("renew_reply", caller=caller, name=name, began=began, now=now))

    async def keep_answer(self, caller: str, name: str, began: datetime, answer: KeptAnswer) -> None:
        """Remember the answer to what began then."""
        async with self.db.write() as tx:
            told = {"status_code": answer.status, "location": answer.location, "body": answer.body}
            await tx.run("keep_reply", caller=caller, name=name, began=began, **told)

    async def forget_answer(self, caller: str, name: str, began: datetime) -> None:
        """Let the request be made again: what began then came to nothing."""
        async with self.db.write() as tx:
            await tx.run("forget_reply", caller=caller, name=name, began=began)
