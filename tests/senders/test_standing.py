"""Whose fault a refusal is: told by how others of the same service fare."""

from fencepost.senders import standing
from fencepost.senders.request import Origin
from fencepost.senders.standing import IN_A_ROW_MAX, NEVER_ACCEPTED_MAX, Blame, Standing

APPLE = Origin(scheme="https", host="apple.test", port=443)
MOZILLA = Origin(scheme="https", host="mozilla.test", port=443)


def address(number: int) -> bytes:
    return number.to_bytes(4, "big")


def test_one_address_alone_proves_nothing_however_often_it_is_refused() -> None:
    seen = Standing()
    blames = {seen.refused(APPLE, address(1)) for _ in range(50)}
    assert blames == {Blame.NOBODY_KNOWS}


def test_a_service_that_accepts_others_has_a_word_against_the_address() -> None:
    seen = Standing()
    seen.accepted(APPLE)
    assert seen.refused(APPLE, address(1)) is Blame.ADDRESS


def test_what_one_service_accepts_says_nothing_of_another() -> None:
    seen = Standing()
    seen.accepted(MOZILLA)
    assert seen.refused(APPLE, address(1)) is Blame.NOBODY_KNOWS


def test_a_service_that_refuses_one_after_the_other_refuses_us() -> None:
    seen = Standing()
    blames = [seen.refused(APPLE, address(n)) for n in range(NEVER_ACCEPTED_MAX + 2)]
    assert blames == [Blame.NOBODY_KNOWS, Blame.NOBODY_KNOWS, *[Blame.OURS] * 3]


def test_a_key_that_was_good_once_needs_more_against_it() -> None:
    seen = Standing()
    seen.accepted(APPLE)
    blames = [seen.refused(APPLE, address(n)) for n in range(IN_A_ROW_MAX)]
    assert blames == [*[Blame.ADDRESS] * (IN_A_ROW_MAX - 1), Blame.OURS]
    seen.accepted(APPLE)
    assert seen.refused(APPLE, address(1)) is Blame.ADDRESS


def test_an_acceptance_after_the_key_was_repaired_clears_it_of_all_before() -> None:
    seen = Standing()
    for number in range(NEVER_ACCEPTED_MAX):
        seen.refused(APPLE, address(number))
    seen.accepted(APPLE)
    assert seen.refused(APPLE, address(9)) is Blame.ADDRESS


def test_what_is_remembered_is_bounded_whatever_hosts_recipients_name() -> None:
    seen = Standing()
    seen.accepted(APPLE)
    for number in range(standing.SERVICES_MAX):
        seen.accepted(Origin(scheme="https", host=f"h{number}.test", port=443))
    assert len(seen._services) == standing.SERVICES_MAX
    assert seen.refused(APPLE, address(1)) is Blame.NOBODY_KNOWS  # forgotten: unheard of longest
