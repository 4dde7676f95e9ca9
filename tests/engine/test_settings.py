"""A bad setting is refused with one sentence that names its variable; secrets are never shown."""

import re
from pathlib import Path

import pytest

from fencepost import settings
from fencepost.core.access import (
    SECRET_MAX_AGE_SECONDS,
    Credentials,
    FromIam,
    FromSecret,
    FromUrl,
)
from fencepost.core.budget import ImpossibleTiming, Timing
from fencepost.settings import (
    SecretMissing,
    SettingsError,
    read_database,
    read_secret,
    read_settings,
)

URL = "postgresql://worker:hunter2@db/app"
ENOUGH = {"DATABASE_URL": URL, "FENCEPOST_INSTALLATION": "production"}


def test_two_variables_are_enough() -> None:
    settings = read_settings(ENOUGH)
    assert (settings.database.url, settings.installation) == (URL, "production")
    assert (settings.channels, settings.queue_url) == ((), None)
    assert settings.timing == Timing()


def test_what_is_said_outranks_the_environment() -> None:
    settings = read_settings(ENOUGH, over={"FENCEPOST_INSTALLATION": "staging"})
    assert (settings.database.url, settings.installation) == (URL, "staging")


def test_every_variable_is_read() -> None:
    settings = read_settings(
        {
            **ENOUGH,
            "FENCEPOST_CHANNELS": " orders, alerts ,,orders",
            "FENCEPOST_SEND_TIMEOUT_SECONDS": "3.5",
            "FENCEPOST_SETTLE_RESERVE_SECONDS": "1",
            "FENCEPOST_LEASE_SECONDS": "9",
            "FENCEPOST_LINGER_SECONDS": "0",
            "FENCEPOST_QUEUE_URL": "https://sqs/1/evidence",
            "FENCEPOST_DRAIN_MESSAGES_MAX": "0",
        }
    )
    assert settings.channels == ("orders", "alerts")
    assert settings.queue_url == "https://sqs/1/evidence"
    assert settings.drain_messages_max == 0
    assert settings.timing == Timing(
        send_timeout_seconds=3.5,
        settle_reserve_seconds=1.0,
        lease_seconds=9.0,
        linger_seconds=0.0,
    )


@pytest.mark.parametrize("name", ENOUGH)
@pytest.mark.parametrize("value", [None, "", "  "])
def test_what_is_required_is_named(name: str, value: str | None) -> None:
    given = {**ENOUGH, name: value or ""}
    if value is None:
        del given[name]
    with pytest.raises(SettingsError, match=name):
        read_settings(given)


@pytest.mark.parametrize("value", ["20s", "abc", "1,5"])
def test_a_duration_that_is_no_number_is_named(value: str) -> None:
    with pytest.raises(SettingsError, match="FENCEPOST_LEASE_SECONDS is"):
        read_settings({**ENOUGH, "FENCEPOST_LEASE_SECONDS": value})


@pytest.mark.parametrize("value", ["0", "-5", "nan", "inf", "901"])
def test_a_lease_that_cannot_be_is_refused_by_its_variable(value: str) -> None:
    with pytest.raises(ImpossibleTiming, match="FENCEPOST_LEASE_SECONDS"):
        read_settings({**ENOUGH, "FENCEPOST_LEASE_SECONDS": value})


def test_two_settings_that_cannot_both_hold_are_both_named() -> None:
    given = {**ENOUGH, "FENCEPOST_LEASE_SECONDS": "30", "FENCEPOST_SEND_TIMEOUT_SECONDS": "40"}
    with pytest.raises(ImpossibleTiming) as refused:
        read_settings(given)
    assert "FENCEPOST_LEASE_SECONDS (30)" in str(refused.value)
    assert "FENCEPOST_SEND_TIMEOUT_SECONDS (40)" in str(refused.value)


@pytest.mark.parametrize("url", ["my-queue", "https://sqs.eu-central-1.amazonaws.com/1/way.fifo"])
def test_a_queue_that_is_no_url_or_takes_no_command_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="FENCEPOST_QUEUE_URL"):
        read_settings({**ENOUGH, "FENCEPOST_QUEUE_URL": url})


@pytest.mark.parametrize("text", [",,,", " , ", ","])
def test_names_that_name_nothing_do_not_mean_all(text: str) -> None:
    with pytest.raises(SettingsError, match="FENCEPOST_CHANNELS"):
        read_settings({**ENOUGH, "FENCEPOST_CHANNELS": text})
    assert read_settings({**ENOUGH, "FENCEPOST_CHANNELS": "  "}).channels == ()


@pytest.mark.parametrize("value", ["-1", "1.5", "101", "all", "²"])
def test_a_number_of_messages_that_cannot_be_is_refused(value: str) -> None:
    with pytest.raises(SettingsError, match="FENCEPOST_DRAIN_MESSAGES_MAX is"):
        read_settings({**ENOUGH, "FENCEPOST_DRAIN_MESSAGES_MAX": value})


def test_settings_do_not_show_the_password() -> None:
    assert "hunter2" not in repr(read_settings(ENOUGH))


def test_the_database_alone_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", URL)
    assert read_database().url == URL


@pytest.mark.parametrize(
    ("given", "credentials"),
    [
        ({}, FromUrl()),
        ({"FENCEPOST_DATABASE_SECRET_ID": " "}, FromUrl()),
        ({"FENCEPOST_DATABASE_IAM": "false"}, FromUrl()),
        ({"FENCEPOST_DATABASE_IAM": "True"}, FromIam()),
        ({"FENCEPOST_DATABASE_SECRET_ID": "s"}, FromSecret(secret_id="s", max_age_seconds=300.0)),
        (
            {
                "FENCEPOST_DATABASE_SECRET_ID": "s",
                "FENCEPOST_DATABASE_SECRET_MAX_AGE_SECONDS": "60",
            },
            FromSecret(secret_id="s", max_age_seconds=60.0),
        ),
    ],
)
def test_who_we_are_is_in_the_url_in_a_secret_or_vouched_for(
    given: dict[str, str], credentials: Credentials
) -> None:
    assert read_settings({**ENOUGH, **given}).database.credentials == credentials
    assert read_database({**ENOUGH, **given}).credentials == credentials


def test_a_secret_may_say_where_the_database_is_and_a_token_may_not() -> None:
    secret = {"FENCEPOST_DATABASE_SECRET_ID": "s"}
    assert read_database(secret).url == ""
    with pytest.raises(SettingsError, match="DATABASE_URL is not set"):
        read_database({"FENCEPOST_DATABASE_IAM": "true"})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"FENCEPOST_DATABASE_SECRET_ID": "s", "FENCEPOST_DATABASE_IAM": "true"},
            "FENCEPOST_DATABASE_SECRET_ID and FENCEPOST_DATABASE_IAM",
        ),
        ({"FENCEPOST_DATABASE_IAM": "yes please"}, "FENCEPOST_DATABASE_IAM is"),
        ({"FENCEPOST_DATABASE_CA_FILE": "/nowhere/ca.pem"}, "/nowhere/ca.pem"),
        (
            {
                "FENCEPOST_DATABASE_SECRET_ID": "s",
                "FENCEPOST_DATABASE_SECRET_MAX_AGE_SECONDS": "0",
            },
            "FENCEPOST_DATABASE_SECRET_MAX_AGE_SECONDS is 0",
        ),
        (
            {
                "FENCEPOST_DATABASE_SECRET_ID": "s",
                "FENCEPOST_DATABASE_SECRET_MAX_AGE_SECONDS": "5 min",
            },
            "needs a number of seconds",
        ),
    ],
)
def test_access_that_cannot_be_is_refused_by_its_variables(
    given: dict[str, str], words: str
) -> None:
    with pytest.raises(SettingsError, match=words) as refused:
        read_database({**ENOUGH, **given})
    assert "\n" not in str(refused.value)


def test_a_secret_is_found_in_a_variable_or_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hunter2\n")
    assert read_secret("env:HOOK", {"HOOK": " hunter2 "}) == "hunter2"
    assert read_secret(f"file:{file}", {}) == "hunter2"


@pytest.mark.parametrize(
    "reference", ["env:HOOK", "env:EMPTY", "file:/nowhere/secret", "file:{binary}", "hunter2"]
)
def test_a_secret_that_is_not_there_is_named_by_its_reference(
    reference: str, tmp_path: Path
) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SecretMissing) as missing:
        read_secret(reference.format(binary=binary), {"EMPTY": " "})
    assert "\n" not in str(missing.value)


def test_the_page_on_access_names_every_variable_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "database.md").read_text()
    named = set(re.findall(r"\bFENCEPOST_DATABASE_[A-Z_]+\b", page))
    code = Path(settings.__file__).read_text()
    assert named == set(re.findall(r"\bFENCEPOST_DATABASE_[A-Z_]+\b", code))
    assert f"seconds, {SECRET_MAX_AGE_SECONDS:g}" in page
