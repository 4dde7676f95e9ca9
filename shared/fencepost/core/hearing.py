"""What an answer tells telemetry: ids and counts, never a recipient or a payload (G10)."""

from collections import defaultdict
from collections.abc import Iterator

from fencepost.core.exchange import Exchange, Exchanged
from fencepost.core.fact import Fact, LeasesRenewed, RowsClaimed, WordSettled
from fencepost.core.notification import ChannelId, Claimed
from fencepost.core.words import Words


def facts_of(exchange: Exchange, answer: Exchanged, words: Words) -> Iterator[Fact]:
    """The facts of one answered exchange, while its words are still known."""
    yield from _settled(exchange, answer, words)
    if exchange.renew:
        yield LeasesRenewed(count=len(exchange.renew) - len(answer.lost), lost=len(answer.lost))
    yield from _claimed(answer)


def _settled(exchange: Exchange, answer: Exchanged, words: Words) -> Iterator[WordSettled]:
    for word, verdict in zip(exchange.settle, answer.verdicts, strict=True):
        if said := words.get(word.held):
            yield WordSettled(
                channel=said.channel,
                held=word.held,
                outcome=word.outcome,
                kind=word.kind,
                verdict=verdict,
                reason=word.reason,
                took_ms=word.facts.took_ms,
            )


def _claimed(answer: Exchanged) -> Iterator[RowsClaimed]:
    by_channel: defaultdict[ChannelId, list[Claimed]] = defaultdict(list)
    for row in answer.claimed:
        by_channel[row.channel].append(row)
    for channel, rows in by_channel.items():
        yield RowsClaimed(
            channel=channel,
            count=len(rows),
            taken_over=sum(row.interruptions > 0 for row in rows),
            in_doubt=sum(row.doubt for row in rows),
            oldest_due_seconds=max(row.age_seconds for row in rows),
        )
