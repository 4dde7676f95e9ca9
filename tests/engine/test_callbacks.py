"""What calls of strangers may cost, and how long what is known of channels and secrets is believed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.callbacks import (
    CHANNELS_KEPT_SECONDS,
    RENEWALS_APART_SECONDS,
    UNKNOWN_APART_SECONDS,
    Callbacks,
    Means,
)
from fencepost.core.callback import Callback, CallbackChannel
from fencepost.senders.twilio_call import read_call
from fencepost.telemetry import no_metrics
from tests.senders.claimed import CLAIMED
from tests.senders.twilio_caller import ACCOUNT, SECRET, SETTINGS, call, form_of


@dataclass
class Ground:
    """A database, a store of secrets and a clock. The store keeps `kept` until it is asked anew for `newest`."""

    channels: list[str] = field(default_factory=lambda: ["sms"])
    kept: str = SECRET
    newest: str = SECRET
    now: float = 1000.0
    looked: int = 0
    renewed: int = 0
    told: list[Callback] = field(default_factory=list)

    def callback(self, callbacks: Sequence[Callback]) -> str:
        self.told += callbacks
        return "A" * len(callbacks)

    def callback_channels(self) -> list[CallbackChannel]:
        self.looked += 1
        return [
            CallbackChannel(name=name, settings=SETTINGS, secret_reference="ssm:twilio")
            for name in self.channels
        ]

    def secret(self, reference: str, anew: bool) -> str:
        assert reference == "ssm:twilio"
        self.renewed += anew
        self.kept = self.newest if anew else self.kept
        return self.kept

    def opened(self) -> Callbacks:
        return Callbacks(
            Means(
                ledger=self,
                read=read_call,
                secret=self.secret,
                clock=lambda: self.now,
                lines=lambda line: None,
                metrics=no_metrics,
            )
        )


def said(channel: str = "sms", **how: Any) -> Mapping[str, Any]:
    return call(CLAIMED, form_of("delivered"), channel=channel, **how)


def test_a_token_that_was_changed_is_believed_at_its_first_call() -> None:
    ground = Ground(kept=f"{ACCOUNT}:before")
    assert ground.opened().answer(said()) == {"statusCode": 204}
    assert len(ground.told) == 1


def test_whoever_forges_has_a_secret_read_anew_once_a_minute() -> None:
    ground = Ground()
    callbacks = ground.opened()
    for _ in range(50):
        assert callbacks.answer(said(token="guessed")) == {"statusCode": 403}
    assert ground.renewed == 1
    ground.now += RENEWALS_APART_SECONDS
    callbacks.answer(said(token="guessed"))
    assert (ground.renewed, ground.told) == (2, [])
    assert callbacks.answer(said()) == {"statusCode": 204}


def test_whoever_names_channels_that_are_not_there_asks_the_database_once_a_second() -> None:
    ground = Ground()
    callbacks = ground.opened()
    for number in range(50):
        assert callbacks.answer(said(f"nowhere{number}")) == {"statusCode": 403}
    assert ground.looked == 1
    ground.channels.append("new")
    ground.now += UNKNOWN_APART_SECONDS + 0.1
    assert callbacks.answer(said("new")) == {"statusCode": 204}
    assert ground.looked == 2


def test_a_channel_that_is_known_costs_no_question_for_a_minute() -> None:
    ground = Ground()
    callbacks = ground.opened()
    for _ in range(50):
        assert callbacks.answer(said()) == {"statusCode": 204}
        ground.now += 1
    assert ground.looked == 1
    ground.channels = []
    ground.now += CHANNELS_KEPT_SECONDS
    assert callbacks.answer(said()) == {"statusCode": 403}
    assert len(ground.told) == 50
