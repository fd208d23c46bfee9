"""The store in PostgreSQL as an ORM has it: SQLAlchemy 2, with a mapped class for each table.

The swap is the version counter of the mapper: each flush of a run increases it, and one that finds
another number in the row has lost. What a run is found by is set where its record is set, and
nowhere else, so for whoever goes through these classes the two cannot disagree.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    DateTime,
    ForeignKeyConstraint,
    Identity,
    Index,
    and_,
    create_engine,
    delete,
    exists,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship, selectinload
from sqlalchemy.orm.exc import StaleDataError
from store import Claim, Decision, HostError, Key, New, Row

from agui_runs import Interrupt, RunRecord
from stores.rows import readable

LIVE = text("status IN ('reserved', 'started')")
ENDED = text("status NOT IN ('reserved', 'started')")
PENDING = text("status = 'pending'")


class Base(DeclarativeBase):
    """What the mapped classes have in common: a JSON object, and times with a zone."""

    type_annotation_map = {dict[str, Any]: JSON(), datetime: DateTime(timezone=True)}  # noqa: RUF012


class Run(Base):
    """A run: its record, what it is found by, and what stands beside it."""

    __tablename__ = "runs"

    scope: Mapped[str] = mapped_column(primary_key=True)
    thread_id: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(Identity())
    version: Mapped[int] = mapped_column()
    record: Mapped[dict[str, Any]] = mapped_column(JSONB)
    status: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    input: Mapped[dict[str, Any]]
    actor: Mapped[str]
    alive_until: Mapped[datetime]
    # Loaded by the save of a paused run, and by nobody else.
    requests: Mapped[list["Request"]] = relationship(
        cascade="all, delete-orphan", passive_deletes=True, lazy="raise"
    )

    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012
    __table_args__ = (
        Index("runs_of_thread", "scope", "thread_id", "created_at", "number"),
        Index("live_of_thread", "scope", "thread_id", postgresql_where=LIVE),
        Index("live_by_lease", "alive_until", postgresql_where=LIVE),
        Index("ended_by_age", "updated_at", postgresql_where=ENDED),
    )

    def put(self, run: RunRecord) -> None:
        """Set the record and, from it, all that it is found by."""
        for name, value in derived(run).items():
            setattr(self, name, value)
        if "requests" in self.__dict__:
            held = {request.interrupt_id: request for request in self.requests}
            self.requests = [request_of(run, ask, held.get(ask.id)) for ask in run.interrupts]


class Request(Base):
    """An interrupt of a paused run. Where it never expires, its expiry is null and comes last."""

    __tablename__ = "requests"

    scope: Mapped[str] = mapped_column(primary_key=True)
    thread_id: Mapped[str] = mapped_column(primary_key=True)
    interrupt_id: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str]
    tool_call_id: Mapped[str]
    status: Mapped[str]
    expires_at: Mapped[datetime | None]

    __table_args__ = (
        ForeignKeyConstraint(
            ["scope", "thread_id", "run_id"],
            ["runs.scope", "runs.thread_id", "runs.run_id"],
            ondelete="CASCADE",
        ),
        Index("requests_of_run", "scope", "thread_id", "run_id"),
        Index("requests_of_call", "scope", "thread_id", "tool_call_id"),
        Index("pending_of_thread", "scope", "thread_id", postgresql_where=PENDING),
        Index("pending_of_scope", "scope", "expires_at", postgresql_where=PENDING),
        Index("pending_by_expiry", "expires_at", postgresql_where=PENDING),
    )


class Execution(Base):
    """A claim on a tool call, and its result. It outlives the run that took it."""

    __tablename__ = "executions"

    scope: Mapped[str] = mapped_column(primary_key=True)
    thread_id: Mapped[str] = mapped_column(primary_key=True)
    tool_call_id: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str]
    claimed_at: Mapped[datetime]
    result: Mapped[str | None]

    __table_args__ = (
        Index("unfinished_by_time", "claimed_at", postgresql_where=text("result IS NULL")),
    )


class Audit(Base):
    """A decision, and who made it. It outlives the run that it was made on."""

    __tablename__ = "decisions"

    scope: Mapped[str] = mapped_column(primary_key=True)
    thread_id: Mapped[str] = mapped_column(primary_key=True)
    interrupt_id: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str]
    number: Mapped[int] = mapped_column(Identity())
    decision: Mapped[str]
    decided_at: Mapped[datetime]
    actor: Mapped[str]
    request: Mapped[str]
    note: Mapped[str | None]
    correction: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))

    __table_args__ = (Index("decisions_of_run", "scope", "thread_id", "run_id"),)


IS_LIVE = Run.status.in_(["reserved", "started"])
IS_PENDING = Request.status == "pending"
RUN_KEY = (Run.scope, Run.thread_id, Run.run_id)
RUNS_OF_REQUESTS = select(Run).join(Run.requests)
CLAIMS = select(Execution, Run.alive_until).outerjoin(
    Run,
    and_(
        Run.scope == Execution.scope,
        Run.thread_id == Execution.thread_id,
        Run.run_id == Execution.run_id,
    ),
)
NEWEST = (Run.created_at.desc(), Run.number.desc())


class OrmStore:
    """The store of `store.py` in one PostgreSQL database, for any number of processes."""

    def __init__(self, url: str) -> None:
        in_utc = {"options": "-c timezone=utc"}
        engine = create_engine(url)
        with engine.begin() as db:
            # Two servers that start at once must not both make the tables.
            db.execute(text("SELECT pg_advisory_xact_lock(8273)"))
            Base.metadata.create_all(db)
        engine.dispose()
        self.engine = create_async_engine(url, connect_args=in_utc)
        self.sessions = async_sessionmaker(self.engine, expire_on_commit=False)

    async def reserve(self, new: New) -> tuple[Row, bool]:
        async with self.sessions.begin() as session:
            is_new = await reserve(session, new)
        return await self.load(new.run.key), is_new

    async def load(self, key: Key) -> Row:
        async with self.sessions() as session:
            found = await session.get(Run, key)
        if found is None:
            raise HostError("run_unknown", "there is no such run", status=404)
        return as_row(found)

    async def save(
        self,
        row: Row,
        run: RunRecord,
        decisions: Sequence[Decision] = (),
        successor: New | None = None,
    ) -> Row | None:
        try:
            async with self.sessions.begin() as session:
                paused = (
                    [selectinload(Run.requests)] if row.run.interrupts or run.interrupts else []
                )
                held = await session.get(Run, run.key, options=paused)
                if held is None or held.version != row.version:
                    return None
                held.put(run)
                # Whoever has lost finds out here, and has written nothing yet.
                await session.flush()
                session.add_all(Audit(**made._asdict()) for made in decisions)
                if successor:
                    await reserve(session, successor)
        except StaleDataError:
            return None
        return row._replace(run=run, version=held.version)

    async def thread(self, scope: str, thread_id: str, before: str | None, limit: int) -> list[Row]:
        query = select(Run).where(Run.scope == scope, Run.thread_id == thread_id)
        if before is not None:
            place = select(Run.created_at, Run.number).where(
                Run.scope == scope, Run.thread_id == thread_id, Run.run_id == before
            )
            query = query.where(tuple_(Run.created_at, Run.number) < place.scalar_subquery())
        return await self._rows(query.order_by(*NEWEST).limit(limit))

    async def is_busy(self, scope: str, thread_id: str, now: datetime) -> bool:
        query = select(Run.run_id).where(
            Run.scope == scope, Run.thread_id == thread_id, IS_LIVE, Run.alive_until > now
        )
        async with self.sessions() as session:
            return (await session.execute(query.limit(1))).first() is not None

    async def awaiting(self, scope: str, thread_id: str, asked: Sequence[str]) -> Row | None:
        query = RUNS_OF_REQUESTS.where(Request.scope == scope, Request.thread_id == thread_id)
        query = query.order_by(*NEWEST).limit(1)
        found = await self._rows(query.where(Request.interrupt_id.in_(asked)))
        found = found or await self._rows(query.where(IS_PENDING))
        return found[0] if found else None

    async def approvals(self, scope: str, limit: int) -> list[tuple[Row, Interrupt]]:
        query = RUNS_OF_REQUESTS.add_columns(Request.interrupt_id)
        query = query.where(Request.scope == scope, IS_PENDING)
        async with self.sessions() as session:
            found = await session.execute(query.order_by(Request.expires_at).limit(limit))
            rows = [(as_row(run), interrupt_id) for run, interrupt_id in found]
        asks = [(row, row.run.interrupt(interrupt_id)) for row, interrupt_id in rows]
        return [(row, ask) for row, ask in asks if ask]

    async def decisions(self, scope: str, thread_id: str, run_ids: Sequence[str]) -> list[Decision]:
        query = select(Audit).where(
            Audit.scope == scope, Audit.thread_id == thread_id, Audit.run_id.in_(run_ids)
        )
        async with self.sessions() as session:
            newest = query.order_by(Audit.decided_at.desc(), Audit.number.desc())
            found = (await session.scalars(newest)).all()
        return [Decision(*(getattr(made, name) for name in Decision._fields)) for made in found]

    async def expired(self, now: datetime, limit: int) -> list[Row]:
        asked = exists().where(Request.expires_at <= now, IS_PENDING, is_request_of(Run))
        async with self.sessions() as session:
            query = select(Run).where(asked).limit(limit)
            return readable(await session.execute(query), as_row)

    async def silent(self, now: datetime, limit: int) -> list[Row]:
        async with self.sessions() as session:
            query = select(Run).where(IS_LIVE, Run.alive_until <= now)
            found = await session.execute(query.order_by(Run.alive_until).limit(limit))
            return readable(found, as_row)

    async def renew(self, keys: Iterable[Key], until: datetime) -> None:
        # The counter stays, for a renewal must not lose a swap against the run itself. All who
        # renew take the rows in one order, and cannot block each other.
        async with self.sessions.begin() as session:
            for key in sorted(keys):
                one = tuple_(*RUN_KEY) == key
                await session.execute(update(Run).where(one).values(alive_until=until))

    async def claim(self, call: Key, run_id: str, now: datetime) -> bool:
        scope, thread_id, tool_call_id = call
        statement = insert(Execution).values(
            scope=scope,
            thread_id=thread_id,
            tool_call_id=tool_call_id,
            run_id=run_id,
            claimed_at=now,
        )
        statement = statement.on_conflict_do_nothing()
        async with self.sessions.begin() as session:
            taken = await session.execute(statement.returning(Execution.run_id))
            return taken.first() is not None

    async def keep_result(self, call: Key, result: str) -> None:
        async with self.sessions.begin() as session:
            claim = await session.get(Execution, call)
            if claim is not None:
                claim.result = result

    async def claimed(self, call: Key) -> Claim | None:
        scope, thread_id, tool_call_id = call
        query = CLAIMS.where(
            Execution.scope == scope,
            Execution.thread_id == thread_id,
            Execution.tool_call_id == tool_call_id,
        )
        async with self.sessions() as session:
            found = (await session.execute(query)).first()
        return None if found is None else as_claim(*found)

    async def unfinished(self, scope: str | None, now: datetime, limit: int) -> list[Claim]:
        query = CLAIMS.where(
            Execution.result.is_(None), or_(Run.alive_until.is_(None), Run.alive_until <= now)
        )
        if scope is not None:
            query = query.where(Execution.scope == scope)
        async with self.sessions() as session:
            found = await session.execute(query.order_by(Execution.claimed_at).limit(limit))
            return [as_claim(*columns) for columns in found]

    async def remove_ended(self, before: datetime, limit: int) -> int:
        async with self.sessions.begin() as session:
            # As in postgresql.py: nobody may reserve a run of the thread meanwhile.
            await session.execute(text("LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE"))
            found = (await session.scalars(removable(before).limit(limit))).all()
            keys = [(run.scope, run.thread_id, run.run_id) for run in found]
            calls = [
                (run.scope, run.thread_id, asked["toolCallId"])
                for run in found
                for asked in run.record["interrupts"]
            ]
            await session.execute(delete(Run).where(tuple_(*RUN_KEY).in_(keys)))
            # A claim goes with the last request that could have its call made again.
            await session.execute(
                delete(Execution).where(
                    tuple_(Execution.scope, Execution.thread_id, Execution.tool_call_id).in_(calls),
                    Execution.result.is_not(None),
                    ~exists().where(is_request_of_call(Execution)),
                )
            )
            return len(found)

    async def close(self) -> None:
        await self.engine.dispose()

    async def _rows(self, query: Any) -> list[Row]:
        async with self.sessions() as session:
            return [as_row(run) for run in await session.scalars(query)]


async def reserve(session: AsyncSession, new: New) -> bool:
    """Insert a run, where its key is free, and say whether it was."""
    scope, thread_id, run_id = new.run.key
    statement = insert(Run).values(
        scope=scope,
        thread_id=thread_id,
        run_id=run_id,
        version=1,
        input=new.input,
        actor=new.actor,
        alive_until=new.alive_until,
        **derived(new.run),
    )
    taken = await session.execute(statement.on_conflict_do_nothing().returning(Run.run_id))
    if taken.first() is None:
        return False
    session.add_all(request_of(new.run, ask) for ask in new.run.interrupts)
    return True


def derived(run: RunRecord) -> dict[str, Any]:
    """Return the columns that are made from a record."""
    return {
        "record": run.to_storage(),
        "status": run.status,
        "created_at": run.created_at,
        "updated_at": run.updated_at,
    }


def request_of(run: RunRecord, ask: Interrupt, held: Request | None = None) -> Request:
    """Return the row of an interrupt: the one that is held, brought up to date, or a new one."""
    request = held or Request(scope=run.scope, thread_id=run.thread_id, interrupt_id=ask.id)
    request.run_id = run.run_id
    request.tool_call_id = ask.tool_call_id
    request.status = ask.status
    request.expires_at = ask.expires_at
    return request


def is_request_of(run: Any) -> Any:
    """Return the condition that a request is one of the run."""
    return and_(
        Request.scope == run.scope, Request.thread_id == run.thread_id, Request.run_id == run.run_id
    )


def is_request_of_call(call: Any) -> Any:
    """Return the condition that a request is about the call."""
    return and_(
        Request.scope == call.scope,
        Request.thread_id == call.thread_id,
        Request.tool_call_id == call.tool_call_id,
    )


def removable(before: datetime) -> Any:
    """Return the query for runs that ended long ago and that nobody can need any more."""
    other = Run.__table__.alias()
    thread_is_live = exists().where(
        other.c.scope == Run.scope,
        other.c.thread_id == Run.thread_id,
        other.c.status.in_(["reserved", "started"]),
    )
    is_settled = exists().where(is_request_of_call(Execution), Execution.result.is_not(None))
    still_matters = exists().where(
        is_request_of(Run),
        or_(IS_PENDING, and_(Request.status == "approved", ~is_settled)),
    )
    query = select(Run).where(~IS_LIVE, Run.updated_at < before, ~thread_is_live, ~still_matters)
    return query.order_by(Run.updated_at)


def as_row(run: Run) -> Row:
    """Return a run as the server has it; its version is the number that the next save must find."""
    record = RunRecord.from_storage(run.record)
    return Row(record, run.version, run.input, run.actor, run.alive_until)


def as_claim(claim: Execution, alive_until: datetime | None) -> Claim:
    """Return a claim as it was read."""
    call = (claim.scope, claim.thread_id, claim.tool_call_id)
    return Claim(call, claim.run_id, claim.claimed_at, alive_until, claim.result)
