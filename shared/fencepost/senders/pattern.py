"""Settings that must look like something. Whoever gets one wrong is told in words what it must be, not by a pattern."""

import msgspec


def like(pattern: str, words: str) -> msgspec.Meta:
    """For `Annotated[str, like(…)]`. `words`: what it must be (misfit.py reads them there)."""
    return msgspec.Meta(pattern=pattern, description=words)
