"""What is wrong with the shape of JSON, in msgspec's words without the values it quotes (G10)."""

import re

import msgspec

REASON_MAX = 200
QUOTED = re.compile(r"(?P<what>Invalid (?:enum )?value) .*?(?P<where> - at `\$[^`]*`)?", re.DOTALL)
UNKNOWN = re.compile(
    r"(?P<what>Object contains unknown field) `(?P<name>.*?)`(?P<where> - at `\$[^`]*`)?", re.DOTALL
)
WORD = re.compile(r"[a-z_]{1,30}")  # a slip of the pen; anything else may be a recipient


def shape_fault(error: msgspec.ValidationError) -> str:
    """One printable line that names the place. An unknown key is repeated only where it reads like a key."""
    text = str(error)
    if quoted := QUOTED.fullmatch(text):
        text = f"{quoted['what']}{quoted['where'] or ''}"
    elif unknown := UNKNOWN.fullmatch(text):
        name = f" `{unknown['name']}`" if WORD.fullmatch(unknown["name"]) else ""
        text = f"{unknown['what']}{name}{unknown['where'] or ''}"
    return one_line(text)


def one_line(text: str) -> str:
    bare = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(bare.split())[:REASON_MAX]
