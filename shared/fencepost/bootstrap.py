"""The only composition root: what is concrete is chosen here, once a process.

A worker keeps its loop and connections, so that a warm invocation dials nothing anew.
"""

import functools
import gc
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fencepost.core.access import Database, ImpossibleAccess
from fencepost.ports import Access, AccessUnavailable
from fencepost.receipts import AskForReceipts
from fencepost.scale_out import ScaleOut
from fencepost.secret_places import SecretPlaces
from fencepost.senders.evidence_queue import EvidenceQueue
from fencepost.senders.registry import SenderRegistry, fault_of
from fencepost.senders.transport import Transport
from fencepost.settings import Settings, SettingsError, read_secret, read_settings
from fencepost.store.access import access_to
from fencepost.store.postgres import PostgresStore
from fencepost.telemetry import Lines, Metrics, embedded_metrics, json_lines, no_metrics
from fencepost.worker import Parts, Worker

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from aws_lambda_powertools.utilities.parameters import SecretsProvider, SSMProvider
    from botocore.config import Config

    from fencepost.backfill.records import Records
    from fencepost.callbacks import Callbacks
    from fencepost.core.command import CommandId
    from fencepost.core.tally import Summary
    from fencepost.deployment import Schema
    from fencepost.store.backfill import CommandStore

CONNECT_TIMEOUT_SECONDS = 5.0
SECRET_TIMEOUT_SECONDS = 2.0  # to connect, and again to answer; one try
DRAINS_APART_SECONDS = 1  # else a poller takes several in one batch, and a batch is one run
RELEASE_SHOWN = 12  # digits of its hash
COLLECT_AFTER = 20_000  # objects more than were freed; Python's own 700 stops a run for nothing


def reach(database: Database) -> Access:
    """The way to this database, for every kind of credentials. Raises `SettingsError`; dials and reads nothing."""
    try:
        return access_to(database, fetch=Secrets().fetch, sign=sign_token)
    except ImpossibleAccess as error:
        raise SettingsError(str(error)) from None


class Secrets:
    """Secrets Manager, kept as long as whoever asks allows. The client is made at the first question."""

    def __init__(self) -> None:
        self._provider: SecretsProvider | None = None

    def fetch(self, secret_id: str, max_age_seconds: float, anew: bool) -> str:
        """A secret of Secrets Manager. Raises `AccessUnavailable`."""
        from aws_lambda_powertools.utilities.parameters import SecretsProvider
        from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError
        from botocore.exceptions import BotoCoreError

        try:
            self._provider = self._provider or SecretsProvider(boto_config=_patience())
            found = self._provider.get(secret_id, max_age=int(max_age_seconds), force_fetch=anew)
            return found if isinstance(found, str) else bytes(found or b"").decode()
        except UnicodeDecodeError:
            raise AccessUnavailable(f"the secret {secret_id} holds bytes, and no text") from None
        except (GetParameterError, BotoCoreError) as error:
            raise AccessUnavailable(f"the secret {secret_id} cannot be read: {error}") from None


def _patience() -> "Config":
    from botocore.config import Config

    return Config(
        connect_timeout=SECRET_TIMEOUT_SECONDS,
        read_timeout=SECRET_TIMEOUT_SECONDS,
        retries={"total_max_attempts": 1},
    )


class Parameters:
    """Parameter Store, in the same way."""

    def __init__(self) -> None:
        self._provider: SSMProvider | None = None

    def fetch(self, name: str, max_age_seconds: float, anew: bool) -> str:
        """A parameter of Systems Manager, decrypted where it is encrypted. Raises `AccessUnavailable`."""
        from aws_lambda_powertools.utilities.parameters import SSMProvider
        from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError
        from botocore.exceptions import BotoCoreError

        try:
            self._provider = self._provider or SSMProvider(boto_config=_patience())
            age = int(max_age_seconds)
            found = self._provider.get(name, max_age=age, decrypt=True, force_fetch=anew)
        except (GetParameterError, BotoCoreError) as error:
            raise AccessUnavailable(f"the parameter {name} cannot be read: {error}") from None
        return str(found or "")


def secret_places(settings: Settings) -> SecretPlaces:
    """Where the channels' secrets are. Nothing is read yet."""
    return SecretPlaces(
        local=read_secret,
        stores={"secretsmanager": Secrets().fetch, "ssm": Parameters().fetch},
        max_age_seconds=settings.secret_max_age_seconds,
    )


def sign_token(host: str, port: int, user: str) -> str:
    """A token of this sandbox's role, signed here: no call leaves. Good for opening connections for 15 minutes."""
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        token: str = boto3.client("rds").generate_db_auth_token(host, port, user)
    except BotoCoreError as error:
        raise AccessUnavailable(f"no token for the database can be signed: {error}") from None
    return token


def make_worker(settings: Settings, *, lines: Lines, metrics: Metrics = no_metrics) -> Worker:
    """A worker with everything real. Nothing is dialled before its first run.

    From here on the process looks for cycles seldom: a send makes none.
    """
    gc.set_threshold(COLLECT_AFTER)
    store = PostgresStore(
        reach(settings.database),
        connect_timeout_seconds=CONNECT_TIMEOUT_SECONDS,
        exchange_timeout_seconds=settings.timing.exchange_timeout_seconds,
    )
    url = settings.queue_url
    queue = EvidenceQueue(url) if url else None
    places = secret_places(settings)
    senders = SenderRegistry(places.read, Transport(), renew_secret=places.read_anew)
    parts = Parts(
        store=store,
        senders=senders,
        lines=lines,
        metrics=metrics,
        count_paused=store.paused_channels,
        note_skips=store.note_skips,
        prune=store.prune,
        say_elsewhere=queue.send if queue else None,
        scale_out=_scale_out(settings, store, queue) if queue else None,
        receipts=AskForReceipts(
            book=store.receipts, senders=senders, channels=settings.channels, clock=time.monotonic
        ),
    )
    return Worker(settings, parts)


def _scale_out(settings: Settings, store: PostgresStore, queue: EvidenceQueue) -> ScaleOut:
    return ScaleOut(
        store=store.waves,
        send=partial(queue.send, apart_seconds=DRAINS_APART_SECONDS),
        messages_max=settings.drain_messages_max,
        channels=settings.channels,
        clock=time.monotonic,
    )


def channel_fault(
    kind: str,
    settings: Mapping[str, Any],
    secret_reference: str | None,
    on_uncertain: str | None = None,
) -> str | None:
    """What no sender of this kind would ever take. Raises `SenderUnavailable` where the kind is not known here."""
    return fault_of(kind, settings, secret_reference, on_uncertain)


@functools.cache
def lambda_worker() -> Worker:
    """The worker of this sandbox: settings are read, and a bad one refused, at its first invocation."""
    settings = read_settings()
    metrics = embedded_metrics(print, settings.installation)
    return make_worker(settings, lines=_lines(settings), metrics=metrics)


def deliver(*, remaining_seconds: float | None, correlation: str) -> dict[str, object]:
    """One run of this sandbox's worker, summed up in plain JSON values."""
    return _run_once(remaining_seconds, correlation).as_json()


def _drain(remaining_seconds: float, id: "CommandId") -> "Summary":
    return _run_once(remaining_seconds, f"drain {id}", part=id)


def _run_once(seconds: float | None, correlation: str, *, part: UUID | None = None) -> "Summary":
    worker = lambda_worker()
    try:
        return worker.deliver(remaining_seconds=seconds, correlation=correlation, part=part)
    finally:
        if worker.spoilt:
            lambda_worker.cache_clear()


def backfill(records: Sequence[Mapping[str, Any]], *, remaining_seconds: float) -> "Records":
    """One batch of commands within the time that is left; nothing is dialled before its first record."""
    from fencepost.backfill.objects import Bucket
    from fencepost.backfill.records import Records
    from fencepost.backfill.work import Backfill, Means
    from fencepost.senders.aws.event import callbacks_in

    settings = read_settings()
    means = Means(
        commands=lambda_commands(),
        objects=Bucket(),
        run_once=_drain,
        clock=time.monotonic,
        installation=settings.installation,
        send=queue_at(settings.queue_url).send if settings.queue_url else None,
        told=callbacks_in,
    )
    return Records(
        Backfill(means),
        count=len(records),
        hard_end=time.monotonic() + remaining_seconds,
        clock=time.monotonic,
        lines=_lines(settings),
        metrics=lambda numbers, run: embedded_metrics(print, settings.installation)(numbers, run),
        hang_up=lambda: lambda_commands().hang_up(),
    )


def queue_at(url: str) -> EvidenceQueue:
    """The way into a queue: `send` takes bodies and the seconds there are, and says what the queue took."""
    return EvidenceQueue(url)


@functools.cache
def lambda_commands() -> "CommandStore":
    """This sandbox's connection for commands, kept between invocations."""
    from fencepost.store.backfill import CommandStore

    return CommandStore(reach(read_settings().database))


def callback(event: Mapping[str, Any]) -> dict[str, int]:
    """One call of Twilio's, answered with its status; a bad setting is refused at the first."""
    return lambda_callbacks().answer(event)


@functools.cache
def lambda_callbacks() -> "Callbacks":
    """What this sandbox knows of channels, kept between invocations."""
    from fencepost.callbacks import Callbacks, Means
    from fencepost.senders.twilio_call import read_call

    settings = read_settings()
    places = secret_places(settings)
    return Callbacks(
        Means(
            ledger=lambda_commands(),
            read=read_call,
            secret=lambda place, anew: places.read_anew(place) if anew else places.read(place),
            clock=time.monotonic,
            lines=_lines(settings),
            metrics=embedded_metrics(print, settings.installation),
        )
    )


def migrate(event: Mapping[str, Any], *, remaining_seconds: float) -> dict[str, object]:
    """The deploy step: the schema brought up to date, and CloudFormation answered where it asked."""
    from fencepost.deployment import Deployment  # here and below: a tick needs none of it
    from fencepost.senders.stack_answer import put_answer

    deployment = Deployment(
        installation=lambda: read_settings().installation,
        open_schema=_schema,
        answer=put_answer,
        lines=json_lines(),
    )
    return deployment.step(event, remaining_seconds)


def _lines(settings: Settings) -> Lines:
    """Each line says which release spoke: two of them run side by side in every deploy."""
    release = settings.release_hash[:RELEASE_SHOWN]
    return json_lines(release_hash=release) if release else json_lines()


def _schema(within_seconds: float) -> "AbstractContextManager[Schema]":
    from fencepost.store.schema_step import schema_step

    conninfo = reach(read_settings().database).conninfo()
    return schema_step(conninfo, within_seconds=within_seconds)
