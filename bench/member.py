"""The other end of `crew.py`. Standard library only: the peers' programs use it from an environment of their own."""

import json
import sys


def tell(**what: object) -> None:
    print(json.dumps(what), flush=True)


def await_word() -> None:
    """Say that we are ready, and wait for the word to begin."""
    tell(ready=True)
    sys.stdin.readline()


def await_end() -> None:
    """Stay as we are until nobody needs us any more (our connections are being looked at)."""
    while sys.stdin.readline():
        pass
