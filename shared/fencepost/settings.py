"""Settings from environment variables, read once into a frozen value. The only reader of the environment.

A bad value is refused with one sentence that names the variable; values of secrets are never shown.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field

from fencepost.core.access import (
    SECRET_MAX_AGE_SECONDS,
    Credentials,
    Database,
    FromIam,
    FromSecret,
    FromUrl,
    ImpossibleAccess,
)
from fencepost.core.budget import ImpossibleTiming, Timing
from fencepost.core.drain import MESSAGES_DEFAULT, MESSAGES_MAX

DATABASE_URL = "DATABASE_URL"
CREDENTIALS_ID = "FENCEPOST_DATABASE_SECRET_ID"
CREDENTIALS_MAX_AGE = "FENCEPOST_DATABASE_SECRET_MAX_AGE_SECONDS"
DATABASE_IAM = "FENCEPOST_DATABASE_IAM"
DATABASE_CA_FILE = "FENCEPOST_DATABASE_CA_FILE"
INSTALLATION = "FENCEPOST_INSTALLATION"
CHANNELS = "FENCEPOST_CHANNELS"
RELEASE_HASH = "FENCEPOST_RELEASE_HASH"
QUEUE_URL = "FENCEPOST_QUEUE_URL"
AGE_OF_SECRETS = "FENCEPOST_SECRET_MAX_AGE_SECONDS"
DRAIN_MESSAGES = "FENCEPOST_DRAIN_MESSAGES_MAX"
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


class Settings(Struct, frozen=True, kw_only=True):
    """What a worker needs to know."""

    database: Database
    installation: str  # the name the database is bound to
    channels: tuple[str, ...] = ()  # names; empty: all
    release_hash: str = ""  # of what is deployed; empty: nobody said
    timing: Timing = field(default_factory=Timing)
    queue_url: str | None = None  # takes what a run cannot say, and what carries a command on
    drain_messages_max: int = MESSAGES_DEFAULT  # of one wave; 0: no run asks for others
    secret_max_age_seconds: float = SECRET_MAX_AGE_SECONDS  # of a channel's secret kept by AWS


def read_settings(
    environment: Mapping[str, str] | None = None, *, over: Mapping[str, str] = MappingProxyType({})
) -> Settings:
    """The worker's settings; `over` (a command line's words) goes over the environment.

    Raises `SettingsError`, or `ImpossibleTiming` for two that cannot both hold."""
    given = {**(os.environ if environment is None else environment), **over}
    return Settings(
        database=_database(given),
        installation=_required(given, INSTALLATION, "the name the database is bound to"),
        channels=_names(given.get(CHANNELS, "")),
        release_hash=given.get(RELEASE_HASH, "").strip(),
        timing=_timing(given),
        queue_url=_queue_url(given.get(QUEUE_URL, "")),
        drain_messages_max=_drain_messages(given),
        secret_max_age_seconds=_secret_max_age(given),
    )


def read_database(
    environment: Mapping[str, str] | None = None, *, over: Mapping[str, str] = MappingProxyType({})
) -> Database:
    """The way to the database, for those who need nothing else. Raises `SettingsError`."""
    return _database({**(os.environ if environment is None else environment), **over})


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
            places = "env:, file:, secretsmanager: or ssm:"
            raise SecretMissing(f"a secret reference starts with {places}")
    if not secret.strip():
        raise SecretMissing(f"{reference} is missing or empty")
    return secret.strip()


def _contents(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise SecretMissing(f"file:{file} cannot be read: {type(error).__name__}") from None


def _database(given: Mapping[str, str]) -> Database:
    credentials = _credentials(given)
    url = given.get(DATABASE_URL, "").strip()
    if not url and not isinstance(credentials, FromSecret):
        raise SettingsError(f"{DATABASE_URL} is not set (where the notifications are).")
    return Database(url=url, credentials=credentials, ca_file=_ca_file(given))


def _credentials(given: Mapping[str, str]) -> Credentials:
    secret_id = given.get(CREDENTIALS_ID, "").strip()
    iam = _switch(given, DATABASE_IAM)
    if secret_id and iam:
        raise SettingsError(f"{CREDENTIALS_ID} and {DATABASE_IAM} are both set: choose one.")
    if iam:
        return FromIam()
    return _secret(given, secret_id) if secret_id else FromUrl()


def _secret(given: Mapping[str, str], secret_id: str) -> FromSecret:
    age = _seconds(given, CREDENTIALS_MAX_AGE)
    try:
        if age is None:
            return FromSecret(secret_id=secret_id)
        return FromSecret(secret_id=secret_id, max_age_seconds=age)
    except ImpossibleAccess as error:
        sentence = str(error).replace("secret_max_age_seconds", CREDENTIALS_MAX_AGE)
        raise SettingsError(sentence) from None


def _ca_file(given: Mapping[str, str]) -> str | None:
    path = given.get(DATABASE_CA_FILE, "").strip()
    if path and not Path(path).is_file():
        raise SettingsError(f"{DATABASE_CA_FILE} is {path[:200]}, and there is no such file here.")
    return path or None


def _switch(given: Mapping[str, str], name: str) -> bool:
    word = given.get(name, "").strip().lower()
    if word not in ("", "true", "false"):
        raise SettingsError(f"{name} is {word[:40]!r}: it is true or false.")
    return word == "true"


def _required(given: Mapping[str, str], name: str, meaning: str) -> str:
    value = given.get(name, "").strip()
    if not value:
        raise SettingsError(f"{name} is not set ({meaning}).")
    return value


def _names(text: str) -> tuple[str, ...]:
    """Something that names nothing is a slip, and must not mean all."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if text.strip() and not names:
        raise SettingsError(f"{CHANNELS} names no channel: leave it empty for all of them.")
    return names


def _queue_url(text: str) -> str | None:
    """Drains are sent with delays of their own and continuations in no group, and a FIFO queue takes neither."""
    url = text.strip()
    if url and not url.startswith(("https://", "http://")):
        raise SettingsError(f"{QUEUE_URL} is no URL of an SQS queue: it starts with https://.")
    if url.endswith(".fifo"):
        raise SettingsError(f"{QUEUE_URL} is a FIFO queue: commands need a standard one.")
    return url or None


def _drain_messages(given: Mapping[str, str]) -> int:
    text = given.get(DRAIN_MESSAGES, "").strip() or str(MESSAGES_DEFAULT)
    if not (text.isascii() and text.isdecimal() and int(text) <= MESSAGES_MAX):
        raise SettingsError(f"{DRAIN_MESSAGES} is {text[:40]!r}: it is 0 to {MESSAGES_MAX}.")
    return int(text)


def _secret_max_age(given: Mapping[str, str]) -> float:
    age = _seconds(given, AGE_OF_SECRETS)
    if age is None:
        return SECRET_MAX_AGE_SECONDS
    if not 1.0 <= age <= 86400.0:
        raise SettingsError(f"{AGE_OF_SECRETS} is {age:g}: it is 1 to 86400 seconds.")
    return age


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
