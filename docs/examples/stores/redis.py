"""The store in Redis: a hash for each run, and each save one script, which nothing interrupts.

Sorted sets stand for the indices. Where a run stands in them is computed from its record, passed to
the script that writes the record, and kept beside it, so that the next script knows what to take
away. Members of one score are in the order of their text, and time text is in the order of time; so
all scores but those of leases are 0.

The scripts make names of keys themselves, which Redis Cluster does not allow. There, put the scope
in braces in every name, and sweep scope by scope. And what Redis has acknowledged it keeps through
a crash of its own with `appendonly yes` and `appendfsync always`, and not otherwise.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from redis.asyncio import Redis
from store import Claim, Decision, HostError, Key, New, Row, time_text

from agui_runs import Interrupt, RunRecord
from stores.rows import as_claim, as_decision, as_row, as_text, decision_columns, readable

WRITE = """
local function forget(name)
    for _, entry in ipairs(cjson.decode(redis.call('HGET', name, 'entries') or '[]')) do
        redis.call('ZREM', entry[1], entry[2])
    end
end

local function write(name, record, entries)
    forget(name)
    redis.call('HSET', name, 'record', record, 'entries', entries)
    for _, entry in ipairs(cjson.decode(entries)) do
        local score = entry[3] and redis.call('HGET', name, 'lease') or 0
        redis.call('ZADD', entry[1], score, entry[2])
    end
end

local function reserve(name, record, entries, place, input, actor, alive_until, lease)
    if redis.call('EXISTS', name) == 1 then return 0 end
    redis.call('HSET', name, 'place', place, 'input', input, 'actor', actor,
        'alive_until', alive_until, 'lease', lease)
    write(name, record, entries)
    return 1
end
"""
RESERVE = f"{WRITE} return reserve(KEYS[1], unpack(ARGV))"

# A script that fails undoes nothing, so all that can fail comes first.
SAVE = f"""
{WRITE}
local name, audit, successor = unpack(KEYS)
local version, record, entries, decisions = unpack(ARGV)
if redis.call('HGET', name, 'record') ~= version then return 0 end
decisions = cjson.decode(decisions)
for id in pairs(decisions) do
    if redis.call('HEXISTS', audit, id) == 1 then return redis.error_reply('decided twice') end
end
write(name, record, entries)
for id, decision in pairs(decisions) do redis.call('HSET', audit, id, decision) end
if successor then reserve(successor, unpack(ARGV, 5)) end
return 1
"""
RENEW = """
local name, alive_until, lease = KEYS[1], unpack(ARGV)
if redis.call('EXISTS', name) == 0 then return end
redis.call('HSET', name, 'alive_until', alive_until, 'lease', lease)
for _, entry in ipairs(cjson.decode(redis.call('HGET', name, 'entries'))) do
    if entry[3] then redis.call('ZADD', entry[1], lease, entry[2]) end
end
"""
CLAIM = """
local name, all, in_scope = unpack(KEYS)
local run_id, claimed_at, member = unpack(ARGV)
if redis.call('EXISTS', name) == 1 then return 0 end
redis.call('HSET', name, 'run_id', run_id, 'claimed_at', claimed_at)
redis.call('ZADD', all, 0, member)
redis.call('ZADD', in_scope, 0, member)
return 1
"""
KEEP = """
local name, all, in_scope = unpack(KEYS)
local result, call = unpack(ARGV)
local claimed_at = redis.call('HGET', name, 'claimed_at')
if not claimed_at then return end
redis.call('HSET', name, 'result', result)
redis.call('ZREM', all, claimed_at .. ' ' .. call)
redis.call('ZREM', in_scope, claimed_at .. ' ' .. call)
"""
# A live run of the thread may be about to make a call that a claim has to stop. And a claim goes
# with the last run whose approval could have the call made again, if it has a result.
REMOVE = f"""
{WRITE}
local name, live = unpack(KEYS)
local version, calls = ARGV[1], cjson.decode(ARGV[2])
if redis.call('HGET', name, 'record') ~= version or redis.call('ZCARD', live) > 0 then return 0 end
for _, call in ipairs(calls) do
    if call[2] and redis.call('HEXISTS', 'claim:' .. call[1], 'result') == 0 then return 0 end
end
forget(name)
redis.call('DEL', name)
for _, call in ipairs(calls) do
    local claim = 'claim:' .. call[1]
    if redis.call('HEXISTS', claim, 'result') == 1
        and redis.call('ZCARD', 'holders:' .. call[1]) == 0 then redis.call('DEL', claim) end
end
return 1
"""
COLUMNS = ("record", "input", "actor", "alive_until")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
AT_ONCE = 100


class RedisStore:
    """The store of `store.py` in one Redis database, for any number of processes."""

    def __init__(self, url: str) -> None:
        self.db: Any = Redis.from_url(url, decode_responses=True)  # Redis gives bytes otherwise.
        scripts = (RESERVE, SAVE, RENEW, CLAIM, KEEP, REMOVE)
        self._reserve, self._save, self._renew, self._claim, self._keep, self._remove = map(
            self.db.register_script, scripts
        )

    async def reserve(self, new: New) -> tuple[Row, bool]:
        is_new = await self._reserve([run_name(new.run.key)], reservation(new))
        return await self.load(new.run.key), bool(is_new)

    async def load(self, key: Key) -> Row:
        for found in await self._columns([key]):
            return as_row(*found)
        raise HostError("run_unknown", "there is no such run", status=404)

    async def save(
        self,
        row: Row,
        run: RunRecord,
        decisions: Sequence[Decision] = (),
        successor: New | None = None,
    ) -> Row | None:
        text = as_text(run)
        audit = {made.interrupt_id: json.dumps(decision_columns(made)) for made in decisions}
        names = [run_name(run.key), named("decisions", *run.key)]
        values = [row.version, text, json.dumps(entries(run)), json.dumps(audit)]
        if successor:
            names.append(run_name(successor.run.key))
            values += reservation(successor)
        return row._replace(run=run, version=text) if await self._save(names, values) else None

    async def thread(self, scope: str, thread_id: str, before: str | None, limit: int) -> list[Row]:
        newest = "+"
        if before is not None:
            place = await self.db.hget(run_name((scope, thread_id, before)), "place")
            if place is None:
                return []
            newest = f"({place}"
        found = await self.db.zrevrangebylex(
            named("thread", scope, thread_id), newest, "-", 0, limit
        )
        return await self._rows(map(key_of, found))

    async def is_busy(self, scope: str, thread_id: str, now: datetime) -> bool:
        later = f"({microseconds(now)}"
        return bool(await self.db.zcount(named("live", scope, thread_id), later, "+inf"))

    async def awaiting(self, scope: str, thread_id: str, asked: Sequence[str]) -> Row | None:
        places = [await self._newest(named("holder", scope, thread_id, each)) for each in asked]
        newest = max((place for place in places if place), default=None)
        newest = newest or await self._newest(named("waiting", scope, thread_id))
        found = await self._rows([key_of(newest)]) if newest else []
        return found[0] if found else None

    async def approvals(self, scope: str, limit: int) -> list[tuple[Row, Interrupt]]:
        members = await self.db.zrangebylex(named("pending", scope), "-", "+", 0, limit)
        asked = [(key_of(member), json.loads(after_time(member))[3]) for member in members]
        rows = {row.run.key: row for row in await self._rows({key for key, _ in asked})}
        found = [(rows[key], interrupt_id) for key, interrupt_id in asked if key in rows]
        asks = [(row, row.run.interrupt(interrupt_id)) for row, interrupt_id in found]
        # One that was answered between the two reads is left out.
        return [(row, ask) for row, ask in asks if ask and ask.is_pending]

    async def decisions(self, scope: str, thread_id: str, run_ids: Sequence[str]) -> list[Decision]:
        found: list[Decision] = []
        for run_id in run_ids:
            made = await self.db.hvals(named("decisions", scope, thread_id, run_id))
            found += [as_decision(*json.loads(columns)) for columns in made]
        return sorted(found, key=lambda made: made.decided_at, reverse=True)

    async def expired(self, now: datetime, limit: int) -> list[Row]:
        # A space follows the time, and '!' comes after it.
        members = await self.db.zrangebylex("pending", "-", f"({time_text(now)}!", 0, limit)
        return readable(await self._columns(dict.fromkeys(map(key_of, members))))

    async def silent(self, now: datetime, limit: int) -> list[Row]:
        members = await self.db.zrangebyscore("live", "-inf", microseconds(now), 0, limit)
        return readable(await self._columns(map(key_of, members)))

    async def renew(self, keys: Iterable[Key], until: datetime) -> None:
        for key in keys:
            await self._renew([run_name(key)], [time_text(until), microseconds(until)])

    async def claim(self, call: Key, run_id: str, now: datetime) -> bool:
        claimed_at = time_text(now)
        values = [run_id, claimed_at, f"{claimed_at} {joined(*call)}"]
        return bool(await self._claim(claim_names(call), values))

    async def keep_result(self, call: Key, result: str) -> None:
        await self._keep(claim_names(call), [result, joined(*call)])

    async def claimed(self, call: Key) -> Claim | None:
        name = named("claim", *call)
        run_id, claimed_at, result = await self.db.hmget(name, "run_id", "claimed_at", "result")
        if run_id is None:
            return None
        alive_until = await self.db.hget(run_name((*call[:2], run_id)), "alive_until")
        return as_claim(*call, run_id, claimed_at, alive_until, result)

    async def unfinished(self, scope: str | None, now: datetime, limit: int) -> list[Claim]:
        name = "unfinished" if scope is None else named("unfinished", scope)
        found: list[Claim] = []
        looked_at = 0
        while len(found) < limit and (
            members := await self.db.zrangebylex(name, "-", "+", looked_at, AT_ONCE)
        ):
            looked_at += len(members)
            for member in members:
                claim = await self.claimed(tuple(json.loads(after_time(member))))
                if claim and is_lost(claim, now):
                    found.append(claim)
        return found[:limit]

    async def remove_ended(self, before: datetime, limit: int) -> int:
        removed = kept = 0
        newest = f"({time_text(before)}"
        while removed < limit and (
            members := await self.db.zrangebylex("ended", "-", newest, kept, limit - removed)
        ):
            some = 0
            for row in readable(await self._columns(map(key_of, members))):
                some += await self._is_removed(row)
            removed, kept = removed + some, kept + len(members) - some
        return removed

    async def _is_removed(self, row: Row) -> bool:
        run = row.run
        if run.is_awaiting_approval:
            return False
        thread = run.key[:2]
        calls = [[joined(*thread, ask.tool_call_id), ask.is_approved] for ask in run.interrupts]
        names = [run_name(run.key), named("live", *thread)]
        return bool(await self._remove(names, [row.version, json.dumps(calls)]))

    async def close(self) -> None:
        await self.db.aclose()

    async def _newest(self, name: str) -> str | None:
        found: list[str] = await self.db.zrevrangebylex(name, "+", "-", 0, 1)
        return found[0] if found else None

    async def _rows(self, keys: Iterable[Key]) -> list[Row]:
        return [as_row(*columns) for columns in await self._columns(keys)]

    async def _columns(self, keys: Iterable[Key]) -> list[tuple[str, str, str, str]]:
        """Read runs, as far as they are still there."""
        async with self.db.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.hmget(run_name(key), COLUMNS)
            return [tuple(found) for found in await pipeline.execute() if found[0] is not None]


def entries(run: RunRecord) -> list[tuple[str, str] | tuple[str, str, bool]]:
    """Return the sets that a run is in, and as what; True where its lease is the score."""
    thread, place, stored = run.key[:2], place_of(run), run.to_storage()
    found: list[tuple[str, str] | tuple[str, str, bool]] = [(named("thread", *thread), place)]
    if run.is_terminal:
        found.append(("ended", f"{stored['updatedAt']} {joined(*run.key)}"))
    else:
        found += [("live", place, True), (named("live", *thread), place, True)]
    for ask in stored["interrupts"]:
        found.append((named("holder", *thread, ask["id"]), place))
        found.append((named("holders", *thread, ask["toolCallId"]), place))
        if ask["status"] == Interrupt.PENDING:
            # What never expires comes last, for a letter comes after every time.
            member = f"{ask['expiresAt'] or 'never'} {joined(*run.key, ask['id'])}"
            found += [("pending", member), (named("pending", run.scope), member)]
    if run.is_awaiting_approval:
        found.append((named("waiting", *thread), place))
    return found


def reservation(new: New) -> list[str]:
    """Return what the scripts reserve a run with."""
    run, lease = new.run, new.alive_until
    made_from_run = [as_text(run), json.dumps(entries(run)), place_of(run)]
    return [*made_from_run, json.dumps(new.input), new.actor, time_text(lease), microseconds(lease)]


def place_of(run: RunRecord) -> str:
    """Return the place of a run on its thread: the newest has the last one."""
    return f"{time_text(run.created_at)} {joined(*run.key)}"


def key_of(member: str) -> Key:
    """Return the key of the run that a member of a set is about."""
    scope, thread_id, run_id, *_ = json.loads(after_time(member))
    return scope, thread_id, run_id


def after_time(member: str) -> str:
    return member.partition(" ")[2]


def joined(*ids: str) -> str:
    """Return ids as one text: other ids have another one, whatever they hold."""
    return json.dumps(ids)


def named(kind: str, *ids: str) -> str:
    """Return the name of what Redis keeps under these ids."""
    return f"{kind}:{joined(*ids)}"


def run_name(key: Key) -> str:
    return named("run", *key)


def claim_names(call: Key) -> list[str]:
    """Return the claim on a call, and the two sets that list it while it has no result."""
    return [named("claim", *call), "unfinished", named("unfinished", call[0])]


def microseconds(time: datetime) -> str:
    """Return a time as a score, which is a double and exact for whole numbers of this size."""
    return str((time - EPOCH) // timedelta(microseconds=1))


def is_lost(claim: Claim, now: datetime) -> bool:
    """Tell whether a claim has no result, and no worker that could still give one."""
    return claim.result is None and (claim.alive_until is None or claim.alive_until <= now)
