"""Stores of the example server: one interface, `store.py`, and one module for each database.

`open_store` takes what the server and the sweep are started with. A driver is imported only where
its store is wanted, so none of them needs the packages of another one.
"""

from store import Store


def open_store(url: str) -> Store:
    """Return the store at a URL, or in the SQLite file where there is no scheme.

    >>> open_store("mysql://127.0.0.1/runs")
    Traceback (most recent call last):
    ValueError: 'mysql' is no scheme of a store
    """
    scheme, separator, path = url.partition("://")
    if not separator:
        scheme, path = "sqlite", f"/{url}"
    if scheme == "sqlite":  # sqlite:///runs.sqlite3 is a relative path, sqlite:////var/... not.
        from stores.sqlite import SqliteStore

        return SqliteStore(path.removeprefix("/"))
    if scheme == "postgresql":
        from stores.postgresql import PostgresStore

        return PostgresStore(url)
    if scheme == "postgresql+sqlalchemy":
        from stores.orm import OrmStore

        return OrmStore(f"postgresql+psycopg://{path}")
    if scheme == "redis":
        from stores.redis import RedisStore

        return RedisStore(url)
    raise ValueError(f"{scheme!r} is no scheme of a store")
