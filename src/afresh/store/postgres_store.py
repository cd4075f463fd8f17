"""The store on PostgreSQL: the same façade, whose searches the server answers."""

from afresh.store.postgres import PostgresDatabase
from afresh.store.postgres_search import PostgresSearches
from afresh.store.postgres_vectors import NO_PGVECTOR, PostgresVectors
from afresh.store.store import Store


class PostgresStore(PostgresSearches, PostgresVectors, Store):
    """Everything afresh remembers, in a database that any number of workers share."""

    def __init__(self, db: PostgresDatabase, url: str) -> None:
        super().__init__(db, url)
        self.no_vectors = None if db.has_pgvector else NO_PGVECTOR
        self._middles = {}
