"""The vocabulary is written twice, in Python and in SQL: they must say the same of every payload."""

import json
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.core.payload import KEYS, payload_fault, payload_text
from tests.core.test_payload import BAD, GOOD

pytestmark = pytest.mark.postgres

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
NUMBERS = st.integers(-5, 100_005) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | st.sampled_from(["low", "normal", "high"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
PAYLOADS = st.dictionaries(st.sampled_from(sorted([*KEYS, "other", ""])), VALUES, max_size=3)


def fault_in_sql(connection: psycopg.Connection, text: str) -> str | None:
    query = "select fencepost.payload_fault_(%s::text::jsonb)"
    row = connection.execute(query, [text]).fetchone()
    assert row is not None
    fault: str | None = row[0]
    return fault


def test_both_say_the_same_of_the_examples(
    connection: psycopg.Connection, subtests: pytest.Subtests
) -> None:
    for payload in GOOD:
        with subtests.test(str(payload)[:60]):
            assert fault_in_sql(connection, payload_text(payload)) is None
    for payload, fault in BAD:
        if _carried_to_sql(fault):
            with subtests.test(fault):
                assert fault_in_sql(connection, json.dumps(payload)) == fault


def _carried_to_sql(fault: str) -> bool:
    """Not what has no JSON form, or none that jsonb takes: that never gets so far."""
    return not any(word in fault for word in ("holds", "JSON form", "no number", "a key"))


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(payload=PAYLOADS)
def test_both_say_the_same_of_any_payload(
    connection: psycopg.Connection, payload: dict[str, Any]
) -> None:
    said = payload_fault(payload)
    in_sql = fault_in_sql(connection, json.dumps(payload))
    assert (said is None) == (in_sql is None), (said, in_sql)
    if said and in_sql and len(payload) == 1:
        assert said == in_sql
