"""TLS against a real server: the right name connects, whoever cannot be verified hears no password."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
import trustme
from psycopg.conninfo import make_conninfo

from fencepost.core.access import Database, FromIam, FromSecret
from fencepost.core.exchange import Failure
from fencepost.core.operation import DatabaseAway
from fencepost.ports import Access, StoreFailed
from fencepost.store.access import access_to
from fencepost.store.postgres import PostgresStore
from fencepost.store.statement import connected
from tests.store.guarded import PASSWORD, ROLE, Guarded, guarded_postgres

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    with guarded_postgres(tls=True) as server:
        yield server


def secret(guarded: Guarded, *, ca_file: str | None = None, **changes: str | int) -> Access:
    """Host and CA in the settings, who we are in the secret."""
    database = Database(
        url=guarded.url(user="", **changes),
        credentials=FromSecret(secret_id="worker"),
        ca_file=ca_file or guarded.ca_file,
    )
    words = f'{{"username": "{ROLE}", "password": "{PASSWORD}"}}'
    return access_to(
        database, fetch=lambda *_: words, sign=lambda *_: pytest.fail("there is a secret")
    )


def refusal(access: Access) -> StoreFailed:
    with pytest.raises(StoreFailed) as failed:
        asyncio.run(look(access))
    return failed.value


async def look(access: Access | str) -> bool:
    store = PostgresStore(access)
    try:
        return await store.has_work()
    finally:
        await store.close()


def test_the_right_name_connects_and_is_encrypted(guarded: Guarded) -> None:
    assert not asyncio.run(look(secret(guarded)))
    with connected(secret(guarded)) as connection:
        assert connection.pgconn.ssl_in_use
        kept = connection.execute(
            "select ssl, version from pg_stat_ssl where pid = pg_backend_pid()"
        )
        assert kept.fetchone() == {"ssl": True, "version": "TLSv1.3"}


def test_another_host_name_is_refused_before_the_login(guarded: Guarded) -> None:
    before = guarded.log().count("connection authenticated")
    failed = refusal(secret(guarded, host="other.fencepost.test"))
    assert failed.failure is Failure.AWAY
    assert "does not match host name" in failed.detail
    assert "\n" not in failed.detail
    assert guarded.log().count("connection authenticated") == before
    with pytest.raises(DatabaseAway, match="does not match host name"):
        connected(secret(guarded, host="other.fencepost.test"))


def test_another_authority_is_refused(guarded: Guarded) -> None:
    foreign = guarded.folder / "foreign.pem"
    trustme.CA().cert_pem.write_to_path(str(foreign))
    failed = refusal(secret(guarded, ca_file=str(foreign)))
    assert "certificate verify failed" in failed.detail


def test_a_server_without_tls_is_refused() -> None:
    with guarded_postgres() as plain:
        foreign = plain.folder / "ca.pem"
        trustme.CA().cert_pem.write_to_path(str(foreign))
        failed = refusal(secret(plain, ca_file=str(foreign)))
    assert "server does not support SSL" in failed.detail


def test_a_url_with_a_ca_file_is_verified_too(guarded: Guarded) -> None:
    def way(host: str) -> Access:
        url = guarded.url(host=host, password=PASSWORD)
        database = Database(url=url, ca_file=guarded.ca_file)
        return access_to(database, fetch=lambda *_: "", sign=lambda *_: "")

    assert not asyncio.run(look(way("db.fencepost.test")))
    assert "does not match host name" in refusal(way("other.fencepost.test")).detail


def test_a_token_is_made_for_each_connection_and_an_old_one_would_be_refused(
    guarded: Guarded,
) -> None:
    """The server knows the newest token only, as if every older one had expired."""
    signed: list[str] = []

    def sign(host: str, port: int, user: str) -> str:
        assert (host, port, user) == ("db.fencepost.test", guarded.server.port, ROLE)
        signed.append(
            f"{host}:{port}/?Action=connect&DBUser={user}&X-Amz-Expires=900&n={'x' * 900}"
        )
        signed[-1] += str(len(signed))
        guarded.password(signed[-1])
        return signed[-1]

    database = Database(url=guarded.url(), credentials=FromIam(), ca_file=guarded.ca_file)
    access = access_to(database, fetch=lambda *_: "", sign=sign)

    async def twice() -> None:
        store = PostgresStore(access)
        assert not await store.has_work()
        await asyncio.to_thread(guarded.end_backends)
        assert not await store.has_work()
        await store.close()

    asyncio.run(twice())
    assert len(set(signed)) == 2
    old = make_conninfo(
        guarded.url(password=signed[0]), sslmode="verify-full", sslrootcert=guarded.ca_file
    )
    with pytest.raises(psycopg.OperationalError, match="authentication failed"):
        psycopg.connect(old)
    guarded.password(PASSWORD)
