"""Settings that must look like something. Whoever gets one wrong is told in words what it must be, not by a pattern."""

import re

import msgspec

MISMATCH = re.compile(r"Expected `str` matching regex '(.*)'(?: - at (`key` in )?`\$\.?([^`]*)`)?")
_WORDS: dict[str, str] = {}  # by the pattern as msgspec shows it


def like(pattern: str, words: str) -> msgspec.Meta:
    """For `Annotated[str, like(…)]`. `words`: what it must be."""
    _WORDS[pattern.replace("\\", "\\\\")] = words
    return msgspec.Meta(pattern=pattern, description=words)


def in_words(error: str) -> str:
    """An error of msgspec's about such a setting in words; any other as it is."""
    found = MISMATCH.fullmatch(error)
    words = _WORDS.get(found[1]) if found is not None else None
    if found is None or words is None:
        return error
    where = found[3] or "it"
    if found[2]:
        where = f"a name in {where}"
    elif where.endswith("[...]"):
        where = f"a value in {where.removesuffix('[...]')}"
    return f"{where} must be {words}"
