"""Between the values of the core and the arguments and rows of the functions in the database."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import fields

from fencepost.core.channel import AttemptPolicy, Channel, Skip
from fencepost.core.exchange import (
    Exchange,
    Exchanged,
    GateAnswer,
    GateWord,
    RunStart,
    RunStarted,
    Verdict,
    Want,
    Word,
)
from fencepost.core.notification import (
    AttemptOutcome,
    ChannelId,
    Claimed,
    OnUncertain,
    RunId,
)
from fencepost.core.receipt import ReceiptTold
from fencepost.store.arrays import BIGINT, BYTEA, INT, SMALLINT, Array, labels

Arguments = Mapping[str, Any]

VERDICTS = {
    "A": Verdict.APPLIED,
    "R": Verdict.REPEATED,
    "L": Verdict.LATE,
    "C": Verdict.CONFLICT,
    "U": Verdict.UNKNOWN,
}
NOT_SYNCHRONOUS = (
    "synchronous_commit is off: what the database has confirmed to a run may be gone after a crash"
)
TEXT_CHARACTERS_MAX = 2000
FIRST_OF_CLAIMED = 3  # before it in each row: verdicts, lost places, gates
RECIPIENT, PAYLOAD, EVIDENCE, ON_UNCERTAIN = map(
    Claimed.__struct_fields__.index, ("recipient", "payload", "evidence", "on_uncertain")
)
DIGITS_MAX = 4000  # Python reads no longer integer
# What JSON this reader cannot read comes to: it has no JSON form either, so its sender refuses that row, and no other.
UNREADABLE: Mapping[str, Any] = {"unreadable": math.nan}
SMALLEST_INT, LARGEST_SMALLINT, LARGEST_INT = 0, 2**15 - 1, 2**31 - 1


def clean(text: str | None) -> str | None:
    """Text that the database takes whatever it was: no NUL, no lone surrogate, not long (G9)."""
    if text is None:
        return None
    whole = text[:TEXT_CHARACTERS_MAX].encode("utf-8", "replace").decode()
    return whole.replace("\0", "\ufffd")


def read_json(text: str | bytes) -> Any:
    """Whatever the database holds as JSON (G9): a row that broke its reader would break every claim it is in.

    Four times as fast as Python's reader, which is left what the quick one refuses: numbers without bounds.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _read_patiently(text if isinstance(text, str) else text.decode())


def _read_patiently(text: str) -> Any:
    try:
        return JSON.raw_decode(text)[0]
    except RecursionError:
        return UNREADABLE


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= DIGITS_MAX else math.copysign(math.inf, float(digits))


JSON = json.JSONDecoder(
    parse_int=_integer
)  # what a database wrote has nothing before it and nothing after


def start_arguments(start: RunStart) -> Arguments:
    return {
        "run": start.run,
        "installation": clean(start.installation),
        "version": start.version,
        "invocation": clean(start.invocation),
        "deadline_in": _seconds(start.deadline_in_seconds),
        "channels": name_list(start.channels),
    }


def name_list(names: Sequence[str]) -> list[str | None]:
    return [clean(name) for name in names]


def skip_arguments(run: RunId, skips: Sequence[Skip]) -> Arguments:
    return {
        "run": run,
        "channels": [skip.channel for skip in skips],
        "revisions": [skip.revision for skip in skips],
        "reasons": [clean(skip.reason) for skip in skips],
    }


def exchange_arguments(exchange: Exchange) -> Arguments:
    said: dict[str, Any] = {
        "run": exchange.run,
        "seq": exchange.seq,
        "lease": _seconds(exchange.lease_seconds),
        "last": exchange.last,
        "r_ids": Array(BIGINT, [held.id for held in exchange.renew]),
        "r_fences": Array(BIGINT, [held.fence for held in exchange.renew]),
    }
    return {**said, **_settle(exchange.settle), **_gates(exchange.gates), **_claim(exchange.claim)}


def _settle(words: Sequence[Word]) -> Arguments:
    """A column of nothing is no array at all: the server need not read, store and join it."""
    facts = [word.facts for word in words]
    return {
        "s_ids": Array(BIGINT, [word.id for word in words]),
        "s_fences": Array(BIGINT, [word.fence for word in words]),
        "s_outcomes": labels([word.outcome for word in words]),
        "s_kinds": labels([word.kind for word in words]),
        "s_delays": _unless_empty(_delays, [word.delay_seconds or None for word in words]),
        "s_reasons": _unless_empty(_texts, [word.reason for word in words]),
        "s_phases": _unless_empty(labels, [fact.phase for fact in facts]),
        "s_statuses": _unless_empty(_statuses, [fact.status for fact in facts]),
        "s_references": _unless_empty(_texts, [fact.reference for fact in facts]),
        "s_digests": _unless_empty(partial(Array, BYTEA), [fact.digest for fact in facts]),
        "s_took": _unless_empty(_durations, [fact.took_ms for fact in facts]),
        "s_details": _unless_empty(_texts, [fact.detail for fact in facts]),
    }


def _unless_empty(write: Callable[[list[Any]], Any], column: list[Any]) -> Any:
    return None if column.count(None) == len(column) else write(column)


def _texts(column: Sequence[str | None]) -> list[str | None]:
    return [clean(text) for text in column]


def _delays(column: Sequence[float | None]) -> list[float | None]:
    return [None if delay is None else _seconds(delay) for delay in column]


def _statuses(column: Sequence[int | None]) -> Array:
    return Array(SMALLINT, [_within(status, LARGEST_SMALLINT) for status in column])


def _durations(column: Sequence[int | None]) -> Array:
    return Array(INT, [_within(milliseconds, LARGEST_INT) for milliseconds in column])


def _gates(words: Sequence[GateWord]) -> Arguments:
    return {
        "g_channels": [word.channel for word in words],
        "g_revisions": [word.revision for word in words],
        "g_pauses": [
            None if word.pause_seconds is None else _seconds(word.pause_seconds) for word in words
        ],
        "g_reasons": [clean(word.reason) for word in words],
    }


def _claim(wants: Sequence[Want]) -> Arguments:
    return {
        "c_channels": [want.channel for want in wants],
        "c_limits": [_within(want.limit, LARGEST_SMALLINT) for want in wants],
        "c_hinted": [want.hint for want in wants],
    }


def exchanged(exchange: Exchange, rows: Sequence[Sequence[Any]]) -> Exchanged:
    """The answer: a first row of verdicts, lost places and gates, then one row for each claimed notification.

    A row whose notification is gone (put into the queue by hand) can be sent by nobody; `conservation()` tells of it.
    """
    verdicts, lost, gates = rows[0][:FIRST_OF_CLAIMED]
    bodies = [list(row[FIRST_OF_CLAIMED:]) for row in rows[1:]]
    return Exchanged(
        verdicts=tuple(VERDICTS[letter] for letter in verdicts),
        lost=tuple(exchange.renew[place - 1] for place in lost),
        gates={ChannelId(int(id)): _gate(gate) for id, gate in (gates or {}).items()},
        claimed=tuple(_claimed(values) for values in bodies if values[RECIPIENT] is not None),
    )


def _gate(gate: Mapping[str, Any]) -> GateAnswer:
    return GateAnswer(
        revision=gate["revision"],
        paused_for_seconds=gate["paused_for"],
        reason=gate["reason"],
        token_in_seconds=gate["token_in"],
    )


def _claimed(values: list[Any]) -> Claimed:
    """By place: the statement names the columns in the order of the fields. By name it takes ten times as long."""
    values[PAYLOAD] = read_json(values[PAYLOAD])
    if values[EVIDENCE] is not None:
        values[EVIDENCE] = AttemptOutcome(values[EVIDENCE])
    if values[ON_UNCERTAIN] is not None:
        values[ON_UNCERTAIN] = OnUncertain(values[ON_UNCERTAIN])
    return Claimed(*values)


def channels(rows: Sequence[Sequence[Any]]) -> tuple[Channel, ...]:
    return tuple(_channel(row) for row in rows)


def receipt_arguments(told: Sequence[ReceiptTold]) -> Arguments:
    gone = [each.gone for each in told]
    return {
        "ids": [each.due.id for each in told],
        "fences": [each.due.fence for each in told],
        "references": [clean(each.due.reference) for each in told],
        "outcomes": [_value(each.outcome) for each in told],
        "reasons": [clean(each.reason) for each in told],
        "details": [clean(each.detail) for each in told],
        "gone": [each is not None for each in gone],
        "gone_ats": [each and each.gone_at for each in gone],
        "guarded": [each is not None and each.guarded for each in gone],
        "pauses": [each.pause_seconds for each in told],
    }


def run_started(rows: Sequence[Sequence[Any]]) -> RunStarted:
    commits = {row[-1] for row in rows}
    return RunStarted(
        channels=channels([row[:-1] for row in rows]),
        unsafe=NOT_SYNCHRONOUS if commits == {"off"} else None,
    )


def _channel(row: Sequence[Any]) -> Channel:
    id, name, sender, settings, secret_reference, slots, rate, on_uncertain, policy, *gate = row
    revision, paused_for, pause_reason, skipped = gate
    return Channel(
        id=ChannelId(id),
        name=name,
        sender=sender,
        settings=read_json(settings),
        secret_reference=secret_reference,
        slots=slots,
        rate_per_second=rate,
        on_uncertain=OnUncertain(on_uncertain),
        policy=_policy(read_json(policy)),
        revision=revision,
        paused_for_seconds=paused_for,
        pause_reason=pause_reason,
        skipped=skipped,
    )


def _policy(words: Mapping[str, Any]) -> AttemptPolicy:
    """The channel's numbers over the defaults; what this code does not know is a newer code's."""
    known = {field.name for field in fields(AttemptPolicy)}
    told: dict[str, Any] = {
        name: word
        for name, word in words.items()
        if name in known and isinstance(word, int | float) and math.isfinite(word)
    }
    return AttemptPolicy(**told)


def _value(word: Any) -> str | None:
    return None if word is None else str(word.value)


def _seconds(seconds: float) -> float:
    """Never NaN (the database takes it for the largest number), and never an int (an array has one type)."""
    return 0.0 if math.isnan(seconds) else float(seconds)


def _within(number: int | None, largest: int) -> int | None:
    return None if number is None else max(SMALLEST_INT, min(number, largest))
