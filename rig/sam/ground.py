"""What the functions find outside their containers: PostgreSQL, a receiver, a queue, a bucket; all on this machine."""

import contextlib
import json
import logging
import os
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import boto3
import psycopg
from moto.server import ThreadedMotoServer
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row

from rig.command import fencepost
from rig.ground import ROOT
from rig.postgres import LocalPostgres, local_postgres
from rig.provider.count import count
from rig.receiver import SECRET, LocalProvider, local_provider
from rig.sam.cli import ADDED, Environments
from rig.sam.engine import HOST_NAME, Engine
from rig.sam.expected import Expected

HERE = Path(__file__).parent
ACCOUNT = (HERE / "account.sql").read_bytes()
CHANNELS = HERE / "channels.toml"
ENV_FILE = ROOT / "env.json"
INSTALLATION = "local"
MIGRATOR = "fencepost_migrator"
USERS = {  # as docs/deploy.md makes them: no function may do more here than it may in the stack
    "MigrateFunction": MIGRATOR,
    "DeliverFunction": "fencepost_worker",
    "BackfillFunction": "fencepost_backfill",
    "CallbackFunction": "fencepost_callback",
}
MIGRATOR_MADE = (HERE / "migrator.sql").read_bytes()
BACKFILL_MADE = (HERE / "backfill.sql").read_bytes()
PRIVATE = "not for any log"  # stands in every payload
TWILIO_TOKEN = "0123456789abcdef0123456789abcdef"  # what events/callback_twilio.json is signed with
TWILIO = {"fencepost/twilio": f"AC{'0' * 32}:{TWILIO_TOKEN}"}  # in the store of secrets
OF_EVENTS = (
    "hooks.example.com",
    "is on its way",
    "+14155550100",
)  # recipients and payloads in the messages of events/


@dataclass(slots=True, kw_only=True)
class Ground:
    """All of it, for one `make sam-local`. Its databases go with its server."""

    engine: Engine
    folder: Path
    server: LocalPostgres
    provider: LocalProvider
    aws: str  # where AWS is, from here
    _numbers: int = 0
    _rows: int = 0
    _arrivals: int = 0  # of earlier places
    _databases: dict[str, str] = field(default_factory=dict)

    @property
    def receiver_url(self) -> str:
        """As the containers reach it."""
        return _from_inside(self.provider.url, self.engine)

    def place(self, like: str) -> "Place":
        """A database of its own, like a remembered one or without anything, and a queue of its own."""
        self._numbers += 1
        name = f"local_{self._numbers}"
        with psycopg.connect(self.server.url, autocommit=True) as admin:
            source = self._databases.get(like, "template0")
            statement = sql.SQL("create database {} template {}")
            admin.execute(statement.format(sql.Identifier(name), sql.Identifier(source)))
            admin.execute(MIGRATOR_MADE)
            grant = sql.SQL("grant create on database {} to {}")
            admin.execute(grant.format(sql.Identifier(name), sql.Identifier(MIGRATOR)))
        self._arrivals = len(self.provider.arrivals())
        queue = self.client("sqs").create_queue(QueueName=name)["QueueUrl"]
        return Place(self, name, queue)

    def remember(self, place: "Place", name: str) -> None:
        """From now on, databases can be made like this one."""
        self._databases[name] = place.name

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.aws,
            region_name="us-east-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
        )

    def lines(self, behaviour: str, number: int, **more: Any) -> list[dict[str, Any]]:
        """Notifications for `fencepost enqueue`, each to an address of its own."""
        times, channel = more.pop("times", 1), more.pop("channel", "orders")
        door = "plain" if channel == "alerts" else "dedupes"
        made = []
        for _ in range(number):
            self._rows += 1
            address = f"{self.receiver_url}/{door}/{behaviour}/{times}/{behaviour}-{self._rows}"
            payload = {"title": "make sam-local", "body": PRIVATE}
            made.append({"channel": channel, "recipient": address, "payload": payload, **more})
        return made

    def effects(self) -> Mapping[str, int]:
        """What the receiver says has come since the database was made."""
        arrivals = self.provider.arrivals(self._arrivals)
        refused = self.provider.count().refused_signatures
        counted = asdict(count(arrivals, refused))
        return {name: number for name, number in counted.items() if isinstance(number, int)}


@dataclass(frozen=True, slots=True)
class Place:
    """One event's surroundings."""

    ground: Ground
    name: str
    queue_url: str  # from here

    @property
    def url(self) -> str:
        return make_conninfo(self.ground.server.url, dbname=self.name)

    @property
    def environments(self) -> Environments:
        """env.json, with the addresses of this one run."""
        engine, server = self.ground.engine, self.ground.server
        own = {
            "AWS_ENDPOINT_URL": _from_inside(self.ground.aws, engine),
            "FENCEPOST_QUEUE_URL": _from_inside(self.queue_url, engine),
            "WEBHOOK_SECRET": SECRET,
        }
        given: dict[str, dict[str, str]] = json.loads(ENV_FILE.read_text())
        return {
            function: {
                **values,
                **{name: value for name, value in own.items() if name in values or name in ADDED},
                "DATABASE_URL": f"postgresql://{USERS[function]}@{HOST_NAME}:{server.port}/{self.name}",
            }
            for function, values in given.items()
        }

    def migrate(self) -> None:
        """As the deploy step would, and what it then takes for the functions to log in."""
        url = make_conninfo(self.url, user=MIGRATOR)
        self.fencepost("migrate", "--database-url", url)
        self.fencepost("bind", INSTALLATION, "--database-url", url)
        with psycopg.connect(self.url, autocommit=True) as admin:
            admin.execute(BACKFILL_MADE)
        self.fencepost("channel", "apply", str(CHANNELS))

    def enqueue(self, lines: Sequence[Mapping[str, Any]]) -> None:
        file = self.ground.folder / f"{self.name}.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.fencepost("enqueue", str(file))

    def enqueue_the_usual(self) -> None:
        """notifications.toml."""
        for line in tomllib.loads((HERE / "notifications.toml").read_text())["line"]:
            number = line.pop("count")
            due = {"due_at": line.pop("due")} if "due" in line else {}
            self.enqueue(self.ground.lines(line.pop("behaviour"), number, **line, **due))

    def prepare(self, expected: Expected) -> None:
        """What an event finds beyond the database it asks for."""
        if expected.due:
            self.enqueue(self.ground.lines("ok", expected.due))
        s3 = self.ground.client("s3")
        for place, text in expected.objects.items():
            bucket, _, key = place.partition("/")
            with contextlib.suppress(s3.exceptions.BucketAlreadyOwnedByYou):
                s3.create_bucket(Bucket=bucket)
            s3.put_object(Bucket=bucket, Key=key, Body=text.encode())

    def account(self) -> Mapping[str, int]:
        with psycopg.connect(self.url, autocommit=True, row_factory=dict_row) as connection:
            counted = connection.execute(ACCOUNT).fetchone()
        assert counted is not None
        asked = self.ground.client("sqs").get_queue_attributes(
            QueueUrl=self.queue_url, AttributeNames=["ApproximateNumberOfMessages"]
        )
        queued = int(asked["Attributes"]["ApproximateNumberOfMessages"])
        return {**counted, **self.ground.effects(), "queued": queued}

    def number(self, query: str) -> int:
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])

    def fencepost(self, *arguments: str) -> str:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
        return fencepost({**kept, "DATABASE_URL": self.url}, *arguments)


@contextlib.contextmanager
def lay_ground(engine: Engine) -> Iterator[Ground]:
    with contextlib.ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="fencepost-sam-local-"))
        )
        folder.chmod(0o755)  # PostgreSQL reads its rules from here
        server = stack.enter_context(local_postgres(settings=_listening(engine, folder)))
        provider = stack.enter_context(local_provider(folder, address=engine.address))
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # or it tells every request
        aws = ThreadedMotoServer(ip_address=engine.address, port=0, verbose=False)
        aws.start()
        stack.callback(aws.stop)
        host, port = aws.get_host_and_port()
        ground = Ground(
            engine=engine,
            folder=folder,
            server=server,
            provider=provider,
            aws=f"http://{host}:{port}",
        )
        for name, secret in TWILIO.items():
            ground.client("secretsmanager").create_secret(Name=name, SecretString=secret)
        yield ground


def _listening(engine: Engine, folder: Path) -> dict[str, str]:
    """Settings of a server that containers reach, and nobody further."""
    peers = ["127.0.0.1/32", *([engine.subnet] if engine.subnet else [])]
    rules = folder / "pg_hba.conf"
    rules.write_text("".join(f"host all all {peer} trust\n" for peer in peers))
    addresses = dict.fromkeys(["127.0.0.1", engine.address])
    return {"listen_addresses": ",".join(addresses), "hba_file": str(rules)}


def _from_inside(url: str, engine: Engine) -> str:
    return url.replace(f"//{engine.address}:", f"//{HOST_NAME}:", 1)
