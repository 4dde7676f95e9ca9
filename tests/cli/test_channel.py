"""`fencepost channel`: a file applied whole or not at all."""

from functools import partial
from pathlib import Path

import pytest

from tests.cli.conftest import Fencepost

pytestmark = pytest.mark.postgres
FULL = """
[channel.hook]
sender = "webhook"
secret = "env:HOOK_SECRET"
slots = 20
rate = 60
burst = 120
on_uncertain = "resend"
payload_bytes_max = 4096
settings = { allow_http = true }
policy = { attempts_max = 4, backoff_base_seconds = 0.5 }

[channel.plain]
sender = "webhook"
secret = "env:X"
on_uncertain = "hold"
"""


@pytest.fixture
def fencepost(inline: Fencepost, database_url: str) -> Fencepost:
    """In this process: what these tests ask needs no process of its own."""
    return partial(inline, database_url)


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "c.toml"
    file.write_text(text)
    return str(file)


def test_all_that_a_file_says_is_what_the_channel_is(fencepost: Fencepost, tmp_path: Path) -> None:
    said = fencepost("channel", "apply", written(tmp_path, FULL))
    assert (said.code, said.out) == (
        0,
        "hook: created (revision 1)\nplain: created (revision 1)\n",
    )
    hook, plain = fencepost("channel", "list", "--json").json["channels"]
    assert (hook["secret_reference"], hook["slots"], hook["rate"]) == ("env:HOOK_SECRET", 20, 60.0)
    assert (hook["burst"], hook["on_uncertain"]) == (120.0, "resend")
    assert hook["policy"]["attempts_max"] == 4
    assert (plain["slots"], plain["rate"], plain["policy"]["attempts_max"]) == (50, None, 8)


FAULTS = {
    "an unknown key": (
        '[channel.a]\nsender = "webhook"\nslotz = 3\n',
        "channel a: there is no slotz; known: sender, settings, secret, slots, rate, ",
    ),
    "an unknown policy key": (
        '[channel.a]\nsender = "webhook"\nsecret = "env:X"\non_uncertain = "hold"\npolicy = { tries = 3 }\n',
        "channel a: there is no policy.tries; known: attempts_max, ",
    ),
    "an unknown table": (
        '[chanel.a]\nsender = "webhook"\n',
        "chanel is unknown here: each table is a [channel.NAME]",
    ),
    "no sender": ('[channel.a]\non_uncertain = "hold"\n', "channel a: sender is missing"),
    "no policy for doubt": (
        '[channel.a]\nsender = "webhook"\nsecret = "env:X"\n',
        "on_uncertain must be chosen",
    ),
    "no secret": (
        '[channel.a]\nsender = "webhook"\non_uncertain = "hold"\n',
        "channel a: a secret reference is missing",
    ),
    "a wrong policy for doubt": (
        '[channel.a]\nsender = "webhook"\nsecret = "env:X"\non_uncertain = "maybe"\n',
        "channel a: on_uncertain must be hold, reconcile or resend",
    ),
    "a wrong name": (
        '[channel.A]\nsender = "webhook"\nsecret = "env:X"\non_uncertain = "hold"\n',
        "a name in channel must be a small letter, then",
    ),
    "too many slots": (
        '[channel.a]\nsender = "webhook"\nsecret = "env:X"\non_uncertain = "hold"\nslots = 5000\n',
        "channel a: slots must be a whole number from 1 to 1000",
    ),
    "slots in quotes": (
        '[channel.a]\nsender = "webhook"\nsecret = "env:X"\non_uncertain = "hold"\nslots = "5"\n',
        "channel a: slots must be a whole number from 1 to 1000",
    ),
    "attempts in quotes": (
        '[channel.a]\nsender = "webhook"\nsecret = "env:X"\non_uncertain = "hold"\npolicy = { attempts_max = "8" }\n',
        "channel a: policy.attempts_max must be a whole number from 1 to 1000",
    ),
    "a wrong choice among a sender's": (
        '[channel.a]\nsender = "apns"\nsecret = "env:X"\non_uncertain = "hold"\n'
        'settings = { topic = "a.b", team_id = "TEAM123456", key_id = "KEY1234567", environment = "prod" }\n',
        "channel a: settings: environment must be production or sandbox",
    ),
    "a password in the clear": (
        '[channel.a]\nsender = "smtp"\nsecret = "env:X"\non_uncertain = "hold"\n'
        'settings = { host = "mail.test", from = "a@b.test", security = "none" }\n',
        "channel a: settings: security is none, and the password would travel in the clear",
    ),
    "a setting nobody knows": (
        '[channel.a]\nsender = "webhook"\nsecret = "env:X"\non_uncertain = "hold"\nsettings = { alow_http = true }\n',
        "channel a: settings: there is no alow_http; known: allow_http, ",
    ),
    "a setting of another type": (
        '[channel.a]\nsender = "webhook"\nsecret = "env:X"\non_uncertain = "hold"\nsettings = { allow_http = "yes" }\n',
        "channel a: settings: allow_http must be true or false",
    ),
    "a pasted secret": (
        '[channel.a]\nsender = "webhook"\non_uncertain = "hold"\nsecret = "whsec_aGlkZGVu"\n',
        "secret says where the secret is",
    ),
    "a rate without end": (
        '[channel.a]\nsender = "webhook"\nsecret = "env:X"\non_uncertain = "hold"\nrate = inf\n',
        "channel a: rate must be a number from 0.000001 to 1000000",
    ),
    "a rate of next to nothing": (
        '[channel.a]\nsender = "webhook"\nsecret = "env:X"\non_uncertain = "hold"\nrate = 1e-320\n',
        "rate",
    ),
    "settings that are no JSON": (
        '[channel.a]\nsender = "webhook"\nsecret = "env:X"\non_uncertain = "hold"\nsettings = { allow_http = nan }\n',
        "settings hold nan or inf",
    ),
    "a NUL": (
        '[channel.a]\nsender = "webhook"\non_uncertain = "hold"\nsettings = { allow_http = "\\u0000" }\n',
        "U+0000",
    ),
    "a reconcile that could never reconcile": (
        '[channel.a]\nsender = "webhook"\nsecret = "env:X"\non_uncertain = "reconcile"\n',
        "can neither be asked",
    ),
    "a tower": ("a = " + "[" * 5000, "nested too deeply"),
    "no TOML": ("[channel.a\n", "Expected ']'"),
    "nothing in it": ("", "no [channel.NAME] table"),
}


def test_a_fault_is_one_line_and_nothing_is_written(fencepost: Fencepost, tmp_path: Path) -> None:
    for case, (text, fault) in FAULTS.items():
        good = (
            '[channel.good]\nsender = "webhook"\nsecret = "env:X"\non_uncertain = "hold"\n'
            if text
            else ""
        )
        said = fencepost("channel", "apply", written(tmp_path, good + text))
        assert (said.code, said.err.count("\n")) == (1, 1), case
        assert fault in said.err, case
        assert "whsec" not in said.err
        assert fencepost("channel", "list", "--json").json == {"channels": []}, case


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (
            'sender = "slack"\nsecret = "env:X"\n',
            'sender = "smtp"\nsettings = { host = "mail.test", from = "a@b.test" }\n',
        ),
        (
            'sender = "ses"\nsettings = { from_address = "a@b.test", configuration_set = "events" }\n',
            'sender = "ses"\nsettings = { from_address = "a@b.test" }\n',
        ),
    ],
    ids=["another sender", "another setting"],
)
def test_a_policy_that_a_table_keeps_is_refused_like_one_it_says(
    fencepost: Fencepost, tmp_path: Path, first: str, then: str
) -> None:
    channel = "[channel.a]\n"
    policy = 'on_uncertain = "reconcile"\n'
    assert fencepost("channel", "apply", written(tmp_path, channel + first + policy)).code == 0
    again = fencepost("channel", "apply", written(tmp_path, channel + first))
    assert again.out == "a: unchanged (revision 1)\n"
    for words in ((), ("--dry-run",)):
        said = fencepost("channel", "apply", written(tmp_path, channel + then), *words)
        assert (said.code, said.err.count("\n")) == (1, 1)
        assert "channel a: on_uncertain = reconcile cannot work" in said.err
    assert fencepost("channel", "list", "--json").json["channels"][0]["revision"] == 1
    said = fencepost(
        "channel", "apply", written(tmp_path, channel + then + 'on_uncertain = "hold"\n')
    )
    assert said.out == "a: changed (revision 2)\n"


def test_a_sender_that_is_not_installed_here_is_told_and_taken(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    text = '[channel.a]\nsender = "webhok"\non_uncertain = "hold"\n'
    said = fencepost("channel", "apply", written(tmp_path, text))
    assert (said.code, said.out) == (0, "a: created (revision 1)\n")
    assert "channel a: unknown sender kind 'webhok' here" in said.err
    assert said.err.count("\n") == 1


def test_pause_and_resume(fencepost: Fencepost, hook: str, channels_file: Path) -> None:
    said = fencepost("channel", "pause", hook, "--reason", "maintenance", "--for", "2h")
    assert (said.code, said.out) == (0, "hook: paused for 2 h\n")
    channels_file.write_text(channels_file.read_text() + "slots = 9\n")
    said = fencepost("channel", "apply", str(channels_file))
    assert said.out == "hook: changed (revision 3); still paused: maintenance\n"
    told = fencepost("status").out
    assert "paused for 1 h 59 min: maintenance" in told
    assert f"fencepost channel resume {hook}" in told
    assert (
        fencepost("channel", "resume", hook).out == "hook: open again (was paused: maintenance)\n"
    )
    assert fencepost("channel", "resume", hook).out == "hook: was not paused\n"


def test_a_dry_run_says_what_would_change(
    fencepost: Fencepost, hook: str, channels_file: Path
) -> None:
    channels_file.write_text(channels_file.read_text() + "slots = 9\n")
    said = fencepost("channel", "apply", str(channels_file), "--dry-run")
    assert said.out == "hook: would be changed (revision 2)\n"
    assert fencepost("channel", "list", "--json").json["channels"][0]["slots"] == 50


@pytest.mark.parametrize(
    "words", [("pause", "nowhere", "--reason", "x"), ("resume", "nowhere")], ids=" ".join
)
def test_an_unknown_channel_is_refused(fencepost: Fencepost, words: tuple[str, ...]) -> None:
    said = fencepost("channel", *words)
    assert (said.code, said.err) == (1, "fencepost: there is no channel nowhere\n")


def test_binding(fencepost: Fencepost) -> None:
    assert fencepost("bind", "production").out == "production: bound\n"
    assert fencepost("bind", "production").out == "production: already\n"
    said = fencepost("bind", "staging")
    assert said.code == 1
    assert "bound to installation production" in said.err
    assert fencepost("bind", "staging", "--force", "--json").json == {
        "installation": "staging",
        "answer": "rebound",
    }
