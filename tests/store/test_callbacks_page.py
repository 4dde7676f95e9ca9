"""docs/callbacks.md: its service hears what Twilio signs, and its statements say what the page says they do."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from fencepost.core.notification import Claimed
from fencepost.senders.twilio_callback import callback_url
from fencepost.senders.twilio_signature import signature_of
from tests.store.bench import Worker, uncertain
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres

PAGE = (Path(__file__).parents[2] / "docs" / "callbacks.md").read_text()
(SERVICE,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
CALLBACK, EVIDENCE = re.findall(r"^```sql\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
KEY = "6f1e2b0a-58c5-4d0e-9a52-0c3f5f1d7a11"  # the page's
TOKEN = "0123456789abcdef"
BASE = "https://hooks.example/twilio?tenant=7#rc=5&rp=all"


@pytest.fixture
def in_doubt(bench: PostgresBench) -> Claimed:
    bench.enqueue()
    worker = Worker(bench)
    claimed = worker.claim_one()
    worker.settle(uncertain(claimed.held, delay_seconds=60))
    return claimed


@pytest.fixture
def hear(bench: PostgresBench) -> Callable[..., int]:
    names: dict[str, Any] = {}
    exec(compile(SERVICE, "callbacks.md", "exec"), names)

    def called(form: dict[str, str], url: str, signature: str) -> int:
        with psycopg.connect(bench.url) as connection:
            connection.execute("set local role fencepost_worker")
            status: int = names["hear"](connection, TOKEN, url, list(form.items()), signature)
            return status

    return called


def letter(bench: PostgresBench, statement: str, claimed: Claimed, key: UUID | str) -> str:
    """The page's statement, of this notification, as the operator."""
    said = statement.replace("array[4711]", f"array[{claimed.id}]").replace(KEY, str(key))
    with psycopg.connect(bench.url) as connection:
        connection.execute("set local role fencepost_operator")
        ((answer,),) = connection.execute(said.encode()).fetchall()
    return str(answer)


@pytest.mark.parametrize("fragment", [True, False], ids=["its fragment signed", "not signed"])
def test_its_service_writes_down_what_twilio_signed(
    bench: PostgresBench, in_doubt: Claimed, hear: Callable[..., int], fragment: bool
) -> None:
    called, _, _ = callback_url(BASE, "web", in_doubt).partition("#")
    form = {"MessageSid": "SM" + "0" * 32, "MessageStatus": "delivered", "AccountSid": "AC"}
    signed = signature_of(TOKEN, called + ("#rc=5&rp=all" if fragment else ""), form.items())
    assert hear(form, called, "bm90IHNpZ25lZA==") == 403
    assert bench.rows("select 1 from fencepost.evidence") == []
    assert hear(form, called, signed) == 204
    assert hear(form, called, signed) == 204
    assert bench.rows("select source, outcome::text, reference from fencepost.evidence") == [
        ("callback", "delivered", "SM" + "0" * 32)
    ]
    assert bench.standing(in_doubt.id).kind == "delivered"


def test_its_service_tells_producers_of_who_is_gone(
    bench: PostgresBench, in_doubt: Claimed, hear: Callable[..., int]
) -> None:
    called, _, _ = callback_url(BASE, "web", in_doubt).partition("#")
    form = {"MessageSid": "SM" + "0" * 32, "MessageStatus": "undelivered", "ErrorCode": "30005"}
    assert hear(form, called, signature_of(TOKEN, called, form.items())) == 204
    assert bench.rows("select notification_id from fencepost.unregistered") == [(in_doubt.id,)]


def test_the_statement_of_a_callback_answers_its_letters(
    bench: PostgresBench, in_doubt: Claimed
) -> None:
    key = in_doubt.idempotency_key
    no_news = CALLBACK.replace("array['delivered']", "array[null]")
    assert letter(bench, CALLBACK, in_doubt, KEY) == "U"
    assert letter(bench, no_news, in_doubt, key) == "-"
    assert bench.standing(in_doubt.id).doubt
    assert letter(bench, CALLBACK, in_doubt, key) == "A"
    assert letter(bench, CALLBACK, in_doubt, key) == "R"
    assert bench.standing(in_doubt.id).kind == "delivered"
    assert letter(bench, CALLBACK.replace("array[1]", "array[9]"), in_doubt, key) == "C"


def test_the_statement_of_evidence_needs_no_key(bench: PostgresBench, in_doubt: Claimed) -> None:
    assert letter(bench, EVIDENCE, in_doubt, "") == "A"
    assert bench.standing(in_doubt.id).kind == "delivered"
