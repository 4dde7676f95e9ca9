"""What is dialled with: parts that cannot be are refused in one sentence, secrets are never quoted."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import pytest
from psycopg.conninfo import conninfo_to_dict

from fencepost.core.access import (
    Credentials,
    Database,
    FromIam,
    FromSecret,
    FromUrl,
    ImpossibleAccess,
)
from fencepost.ports import Access, AccessUnavailable
from fencepost.store.access import access_to

CA = "/etc/ssl/rds.pem"
PLACE = "postgresql://worker@db.test:5433/app"
PLAIN = FromUrl()
SECRET = FromSecret(secret_id="fencepost/worker")
OF_RDS = {"username": "worker", "password": "p @'\\ w", "host": "db.test", "port": 5433, "dbname": "app"}  # fmt: skip


@dataclass
class Sources:
    """A secrets manager and a signer that do as a test says, and remember what they were asked."""

    secret: str = json.dumps(OF_RDS)
    away: bool = False
    asked: list[tuple[str, float, bool]] = field(default_factory=list)
    signed: list[tuple[str, int, str]] = field(default_factory=list)
    numbers: Callable[[], int] = field(default_factory=lambda: count(1).__next__)

    def fetch(self, secret_id: str, max_age_seconds: float, anew: bool) -> str:
        self.asked.append((secret_id, max_age_seconds, anew))
        if self.away:
            raise AccessUnavailable("no answer")
        return self.secret

    def sign(self, host: str, port: int, user: str) -> str:
        self.signed.append((host, port, user))
        return f"{host}:{port}/?Action=connect&DBUser={user}&n={self.numbers()}"

    def to(
        self, url: str = "", credentials: Credentials = PLAIN, ca_file: str | None = CA
    ) -> Access:
        database = Database(url=url, credentials=credentials, ca_file=ca_file)
        return access_to(database, fetch=self.fetch, sign=self.sign)


def parts(access: Access, *, anew: bool = False) -> dict[str, object]:
    return dict(conninfo_to_dict(access.conninfo(anew=anew)))


def test_a_url_has_its_will() -> None:
    access = Sources().to("postgresql://worker:hush@db/app?sslmode=require", ca_file=None)
    assert parts(access) == {
        "user": "worker",
        "password": "hush",
        "host": "db",
        "dbname": "app",
        "sslmode": "require",
    }


def test_a_ca_file_verifies_in_full() -> None:
    found = parts(Sources().to("postgresql://worker:hush@db/app"))
    assert (found["sslmode"], found["sslrootcert"]) == ("verify-full", CA)


def test_a_secret_brings_what_the_url_does_not_say_and_always_who_we_are() -> None:
    sources = Sources()
    assert parts(sources.to(credentials=SECRET)) == {
        "user": "worker",
        "password": OF_RDS["password"],
        "host": "db.test",
        "port": "5433",
        "dbname": "app",
        "sslmode": "verify-full",
        "sslrootcert": CA,
    }
    found = parts(sources.to("postgresql://other@proxy.test:6432/shop", SECRET))
    assert [found[name] for name in ("host", "port", "dbname", "user")] == [
        "proxy.test",
        "6432",
        "shop",
        "worker",
    ]
    assert sources.asked == [("fencepost/worker", 300.0, False)] * 2


def test_what_the_url_leaves_empty_it_does_not_say() -> None:
    found = parts(Sources().to("host='' user='' dbname=shop", SECRET))
    assert [found[name] for name in ("host", "user", "dbname")] == ["db.test", "worker", "shop"]


def test_a_secret_may_be_a_connection_string() -> None:
    access = Sources(secret="postgresql://worker:hush@db.test/app\n").to(credentials=SECRET)
    found = parts(access)
    assert [found[name] for name in ("host", "dbname", "user", "password")] == [
        "db.test",
        "app",
        "worker",
        "hush",
    ]
    assert found["sslmode"] == "verify-full"


def test_what_was_refused_is_asked_for_anew() -> None:
    sources = Sources()
    access = sources.to(credentials=SECRET)
    before = access.conninfo()
    sources.secret = json.dumps({**OF_RDS, "password": "second"})
    assert access.conninfo(anew=True) != before
    assert [anew for *_, anew in sources.asked] == [False, True]


def test_while_the_secret_cannot_be_read_the_last_one_is_good() -> None:
    sources = Sources(away=True)
    access = sources.to(credentials=SECRET)
    with pytest.raises(AccessUnavailable, match="no answer"):
        access.conninfo()
    sources.away = False
    known = access.conninfo()
    sources.away = True
    assert access.conninfo() == known


def test_each_connection_has_a_token_of_its_own() -> None:
    sources = Sources()
    access = sources.to(PLACE, FromIam())
    first, second = parts(access), parts(access)
    assert first["password"] != second["password"]
    assert {one["sslmode"] for one in (first, second)} == {"verify-full"}
    assert sources.signed == [("db.test", 5433, "worker")] * 2
    assert parts(sources.to("postgresql://worker@db.test/app", FromIam()))["host"] == "db.test"
    assert sources.signed[-1] == ("db.test", 5432, "worker")


HUSH = "hun2ter"
IMPOSSIBLE: list[tuple[str, Credentials, str | None, str]] = [
    (f"postgresql://w:{HUSH}%zz@h/d", FromUrl(), None, "cannot be read"),
    (f"host=h password={HUSH}' x", FromUrl(), None, "cannot be read"),
    (f"postgresql://w:p@{HUSH}@h/d", FromUrl(), None, "written as %40"),
    (f"postgresql://w:{HUSH}/x@h/d", FromUrl(), None, "%2F"),
    ("postgresql://w@h/d?sslmode=require", FromUrl(), CA, "sslmode=require"),
    ("postgresql://w@h/d?sslmode=prefer", SECRET, CA, "only verify-full"),
    ("postgresql://w@h/d?sslmode=disable", FromIam(), CA, "only verify-full"),
    ("postgresql://w@h/d?sslrootcert=/other.pem", FromUrl(), CA, "different files"),
    (PLACE, SECRET, None, "FENCEPOST_DATABASE_CA_FILE is not set"),
    (PLACE, FromIam(), None, "FENCEPOST_DATABASE_CA_FILE is not set"),
    (f"postgresql://w:{HUSH}@h/d", SECRET, CA, "holds a password"),
    (f"postgresql://w:{HUSH}@h/d", FromIam(), CA, "holds a password"),
    ("postgresql://db.test/app", FromIam(), CA, "names no user"),
    ("dbname=app user=worker", FromIam(), CA, "names no host"),
    ("postgresql://worker@one.test,two.test/app", FromIam(), CA, "several hosts"),
]


@pytest.mark.parametrize(("url", "credentials", "ca_file", "words"), IMPOSSIBLE)
def test_what_cannot_be_is_one_sentence_without_the_secret(
    url: str, credentials: Credentials, ca_file: str | None, words: str
) -> None:
    sources = Sources()
    with pytest.raises(ImpossibleAccess, match=words) as refused:
        sources.to(url, credentials, ca_file)
    assert "\n" not in str(refused.value)
    assert HUSH not in str(refused.value)
    assert (sources.asked, sources.signed) == ([], []), "nothing was fetched for it"


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        (HUSH, "neither JSON"),
        ("", "neither JSON"),
        (f'"{HUSH}"', "neither JSON"),
        (f"postgresql://w:{HUSH}%zz@h/d", "neither JSON"),
        (json.dumps({"password": HUSH, "host": "h"}), "says: user$"),
        (json.dumps({"username": "w", "host": "h"}), "says: password$"),
        (json.dumps({"username": "w", "password": HUSH}), "says: host$"),
    ],
)
def test_a_secret_that_is_none_is_named_and_not_quoted(secret: str, words: str) -> None:
    access = Sources(secret=secret).to(credentials=SECRET)
    with pytest.raises(AccessUnavailable, match=words) as refused:
        access.conninfo()
    assert "fencepost/worker" in str(refused.value)
    assert HUSH not in str(refused.value)


@pytest.mark.parametrize("seconds", [0.0, 0.5, -1.0, float("nan"), float("inf")])
def test_a_secret_cannot_be_younger_than_a_second_or_kept_for_ever(seconds: float) -> None:
    with pytest.raises(ImpossibleAccess, match="secret_max_age_seconds"):
        FromSecret(secret_id="s", max_age_seconds=seconds)


def test_nothing_shows_the_url() -> None:
    assert "hush" not in repr(Database(url="postgresql://w:hush@h/d"))
