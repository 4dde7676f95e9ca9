"""A file of channels: TOML, validated before the database sees a word of it."""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from fencepost.misfit import in_words
from fencepost.ports import SenderUnavailable
from fencepost_cli.exit_code import CommandFailed
from fencepost_cli.output import print_trouble

if TYPE_CHECKING:
    from fencepost.core.operation import ChannelRow

Name = Annotated[
    str,
    Meta(
        pattern=r"^[a-z][a-z0-9_-]{0,62}$",
        description="a small letter, then small letters, digits, dashes or underscores, 63 at most",
    ),
]
Whole = Annotated[int, Meta(ge=1, le=1000)]
Seconds = Annotated[float, Meta(gt=0, le=31536000)]


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How often and how long a notification is tried; what is left out is the worker's default."""

    attempts_max: Whole | None = None
    interruptions_max: Whole | None = None
    backoff_base_seconds: Seconds | None = None
    backoff_cap_seconds: Seconds | None = None
    age_max_seconds: Seconds | None = None
    retry_after_max_seconds: Seconds | None = None
    unregistered_max: Whole | None = None


class Channel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One `[channel.NAME]` table."""

    sender: Name
    settings: dict[str, Any] = {}
    secret: str | None = (
        None  # where it is: env:NAME, file:PATH, secretsmanager:NAME[#KEY], ssm:NAME[#KEY]
    )
    slots: Whole | None = None
    rate: Annotated[float, Meta(ge=1e-6, le=1e6)] | None = None
    burst: Annotated[float, Meta(ge=1, le=1e6)] | None = None
    on_uncertain: Literal["resend", "hold", "reconcile"] | None = None
    payload_bytes_max: Annotated[int, Meta(ge=1, le=1048576)] | None = None
    policy: Policy = Policy()


class ChannelFile(Struct, frozen=True, forbid_unknown_fields=True):
    channel: dict[Name, dict[str, Any]] = {}


def read_channels(file: Path) -> list[dict[str, Any]]:
    """The words `apply` says to the database. Raises `CommandFailed`: file, place and fault in one line."""
    try:
        tables = tomllib.loads(file.read_text("utf-8"))
        _refuse_tables(file, tables)
        found = msgspec.convert(tables, ChannelFile)
    except OSError as error:
        raise CommandFailed(f"{file}: {error.strerror or 'cannot be read'}") from None
    except msgspec.ValidationError as error:
        raise CommandFailed(f"{file}: {in_words(str(error), ChannelFile)}") from None
    except ValueError as error:
        raise CommandFailed(f"{file}: {error}") from None
    except RecursionError:
        raise CommandFailed(f"{file}: nested too deeply") from None
    if not found.channel:
        raise CommandFailed(f"{file}: no [channel.NAME] table in it")
    return [_words(file, name, table) for name, table in found.channel.items()]


def _refuse_tables(file: Path, tables: dict[str, Any]) -> None:
    for unknown in tables.keys() - {"channel"}:
        raise CommandFailed(f"{file}: {unknown} is unknown here: each table is a [channel.NAME]")


def _words(file: Path, name: str, table: dict[str, Any]) -> dict[str, Any]:
    try:
        channel = msgspec.convert(table, Channel)
    except msgspec.ValidationError as error:
        raise CommandFailed(f"{file}: channel {name}: {in_words(str(error), Channel)}") from None
    _refuse_pasted_secret(file, name, channel.secret)
    words: dict[str, Any] = msgspec.to_builtins(channel)
    _refuse_what_json_lacks(file, name, words.get("settings", {}))
    _refuse_misfits(file, name, channel)
    reference = words.pop("secret", None)
    return {"name": name, "secret_reference": reference, **words}


def refuse_kept_policies(
    file: Path, channels: Sequence[Mapping[str, Any]], known: Iterable["ChannelRow"]
) -> None:
    """A table without `on_uncertain` keeps the channel's: another sender, or other settings, may not serve it."""
    kept = {row.name: row.on_uncertain for row in known}
    for words in channels:
        if "on_uncertain" not in words and (policy := kept.get(words["name"])) is not None:
            settings, secret = words.get("settings", {}), words["secret_reference"]
            with suppress(SenderUnavailable):  # that was told when the file was read
                _refuse(file, words["name"], words["sender"], settings, secret, policy)


def _refuse_misfits(file: Path, name: str, channel: Channel) -> None:
    """A kind that is not installed here may be installed where the worker runs: that is told, not refused."""
    said = (channel.sender, channel.settings, channel.secret, channel.on_uncertain)
    try:
        _refuse(file, name, *said)
    except SenderUnavailable as unknown:
        print_trouble(f"{file}: channel {name}: {unknown} here; its notifications wait for one")


def _refuse(
    file: Path,
    name: str,
    sender: str,
    settings: Mapping[str, Any],
    secret: str | None,
    on_uncertain: str | None,
) -> None:
    from fencepost.bootstrap import channel_fault

    if (fault := channel_fault(sender, settings, secret, on_uncertain)) is not None:
        raise CommandFailed(f"{file}: channel {name}: {fault}")


def _refuse_pasted_secret(file: Path, name: str, reference: str | None) -> None:
    """The message must not repeat it: somebody may have pasted the secret itself."""
    if reference is None:
        return
    kind, _, place = reference.partition(":")
    if kind not in ("env", "file", "secretsmanager", "ssm") or not place.strip():
        raise CommandFailed(
            f"{file}: channel {name}: secret says where the secret is"
            " (env:NAME, file:PATH, secretsmanager:NAME, ssm:NAME); it is not the secret"
        )


def _refuse_what_json_lacks(file: Path, name: str, settings: dict[str, Any]) -> None:
    """TOML knows `nan`, `inf` and U+0000; the database keeps settings as JSON, and would not say which it was."""
    try:
        text = json.dumps(settings, allow_nan=False)
    except ValueError:
        raise CommandFailed(
            f"{file}: channel {name}: settings hold nan or inf, and JSON has neither"
        ) from None
    if "\\u0000" in text.replace("\\\\", ""):
        raise CommandFailed(f"{file}: channel {name}: settings hold the character U+0000")
