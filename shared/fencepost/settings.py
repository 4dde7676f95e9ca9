"""Settings from environment variables, read once into a frozen value. The only reader of the environment.

A bad value is refused with one sentence that names the variable; values of secrets are never shown.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from fencepost.core.budget import ImpossibleTiming, Timing

DATABASE_URL = "DATABASE_URL"
INSTALLATION = "FENCEPOST_INSTALLATION"
CHANNELS = "FENCEPOST_CHANNELS"
EVIDENCE_QUEUE_URL = "FENCEPOST_EVIDENCE_QUEUE_URL"
DURATIONS = {  # field of Timing → variable
    "send_timeout_seconds": "FENCEPOST_SEND_TIMEOUT_SECONDS",
    "settle_reserve_seconds": "FENCEPOST_SETTLE_RESERVE_SECONDS",
    "lease_seconds": "FENCEPOST_LEASE_SECONDS",
    "linger_seconds": "FENCEPOST_LINGER_SECONDS",
}


class SettingsError(ValueError):
    """A setting is missing or wrong: one sentence that names it."""


class SecretMissing(LookupError):
    """A secret reference leads to nothing: one sentence, without the secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a worker needs to know."""

    database_url: str = field(repr=False)
    installation: str  # the name the database is bound to
    channels: tuple[str, ...] = ()  # names; empty: all
    timing: Timing = field(default_factory=Timing)
    evidence_queue_url: str | None = None


def read_settings(
    environment: Mapping[str, str] | None = None, *, over: Mapping[str, str] = MappingProxyType({})
) -> Settings:
    """The worker's settings; `over` (a command line's words) goes over the environment.

    Raises `SettingsError`, or `ImpossibleTiming` for two that cannot both hold."""
    given = {**(os.environ if environment is None else environment), **over}
    return Settings(
        database_url=_required(given, DATABASE_URL, "where the notifications are"),
        installation=_required(given, INSTALLATION, "the name the database is bound to"),
        channels=_names(given.get(CHANNELS, "")),
        timing=_timing(given),
        evidence_queue_url=_queue_url(given.get(EVIDENCE_QUEUE_URL, "")),
    )


def read_database_url(environment: Mapping[str, str] | None = None) -> str:
    """Where the database is, for those who need nothing else. Raises `SettingsError`."""
    given = os.environ if environment is None else environment
    return _required(given, DATABASE_URL, "where the notifications are")


def read_secret(reference: str, environment: Mapping[str, str] | None = None) -> str:
    """The secret a channel's reference leads to: `env:NAME` or `file:PATH`. Raises `SecretMissing`."""
    given = os.environ if environment is None else environment
    kind, _, place = reference.partition(":")
    match kind:
        case "env":
            secret = given.get(place, "")
        case "file":
            secret = _contents(Path(place))
        case _:
            raise SecretMissing(f"a secret reference starts with env: or file:, not {kind[:20]!r}")
    if not secret.strip():
        raise SecretMissing(f"{reference} is missing or empty")
    return secret.strip()


def _contents(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise SecretMissing(f"file:{file} cannot be read: {type(error).__name__}") from None


def _required(given: Mapping[str, str], name: str, meaning: str) -> str:
    value = given.get(name, "").strip()
    if not value:
        raise SettingsError(f"{name} is not set ({meaning}).")
    return value


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _queue_url(text: str) -> str | None:
    url = text.strip()
    if url and not url.startswith(("https://", "http://")):
        raise SettingsError(
            f"{EVIDENCE_QUEUE_URL} is no URL of an SQS queue: it starts with https://."
        )
    return url or None


def _timing(given: Mapping[str, str]) -> Timing:
    named = {name: _seconds(given, variable) for name, variable in DURATIONS.items()}
    try:
        return Timing(**{name: value for name, value in named.items() if value is not None})
    except ImpossibleTiming as error:
        raise ImpossibleTiming(_with_variables(str(error))) from None


def _with_variables(sentence: str) -> str:
    """The core speaks of its own fields; whoever deploys knows them by their variables."""
    for name, variable in DURATIONS.items():
        sentence = sentence.replace(name, variable)
    return sentence


def _seconds(given: Mapping[str, str], name: str) -> float | None:
    text = given.get(name, "").strip()
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise SettingsError(f"{name} is {text[:40]!r}: it needs a number of seconds.") from None
