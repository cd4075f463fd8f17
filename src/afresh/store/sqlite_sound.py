"""Whether a SQLite file and its text index are sound."""

from afresh.store.dialect import Database


async def trouble_in(db: Database) -> str | None:
    """What is broken in the file or its text index, or None."""
    async with db.read() as tx:
        row = await tx.one("integrity")
        if row is not None and row["quick_check"] != "ok":
            return str(row["quick_check"])
        row = await tx.one("not_indexed")
        if row is not None and (row["english"] or row["simple"]):
            return f"the text index does not hold what it should ({row['english']}, {row['simple']})"
    if db.read_only:  # the text index can only be asked by writing to it
        return None
    async with db.write() as tx:
        for config in ("english", "simple"):
            try:
                await tx.run(f"check_{config}")
            except Exception as error:
                return f"the text index ({config}) does not match its text: {error}"
    return None
