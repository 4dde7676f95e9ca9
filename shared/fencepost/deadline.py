"""Deadlines that do not throw away an answer because the runtime stood still (G8).

A runtime that thaws finds overdue timers and waiting answers in the same turn of its loop, and whoever cancels in that
turn loses the answer. So what has come due lets the loop turn a few times before it acts.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, cast
from weakref import WeakKeyDictionary

THAW_TURNS = 10  # of the loop; answers over TLS, HTTP/1.1 and HTTP/2, were read after three

_ASKED: WeakKeyDictionary["asyncio.Task[Any]", Callable[[], bool]] = WeakKeyDictionary()


class Deadline:
    """`asyncio.timeout_at` for whoever waits for a peer: raises TimeoutError after `when` and `turns` of the loop.

    Of two, one inside the other and due together, the inner one needs fewer turns: it knows more. Where `asked` says
    that nothing was asked of the peer yet, no answer can be there: no turns, in which the question might still leave.
    """

    def __init__(
        self, when: float, *, turns: int = THAW_TURNS, asked: Callable[[], bool] = lambda: True
    ) -> None:
        self._when = when
        self._turns = turns
        self._asked = asked
        self._ended = False  # by the deadline

    async def __aenter__(self) -> None:
        work = asyncio.current_task()
        if work is None:
            raise RuntimeError("a deadline is somebody's: it needs a task")
        self._work, self._stops_before = work, work.cancelling()
        _ASKED[work] = self._asked  # the innermost decides
        loop = asyncio.get_running_loop()
        if self._when <= loop.time():  # there was no time at all: nothing begins
            self._alarm: asyncio.Handle = loop.call_soon(self._end)
        else:
            self._alarm = loop.call_at(self._when, self._due, self._turns)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """As `asyncio.timeout` does it: who was stopped from outside too stays stopped."""
        self._alarm.cancel()
        if not self._ended:
            return
        stops = self._work.uncancel()
        if stops <= self._stops_before and kind is asyncio.CancelledError:
            raise TimeoutError from raised

    def _due(self, turns_left: int) -> None:
        loop = asyncio.get_running_loop()
        if turns_left > 0 and self._asked():
            self._alarm = loop.call_soon(self._due, turns_left - 1)
        else:
            self._end()

    def _end(self) -> None:
        self._ended = True
        self._work.cancel()


def stop(work: asyncio.Task[Any]) -> None:
    """Cancel it once what lies in its socket was read. What has not left does not leave any more."""
    coroutine = cast("Coroutine[Any, Any, Any]", work.get_coro())
    begun = inspect.getcoroutinestate(coroutine) != inspect.CORO_CREATED
    asked = begun and _ASKED.get(work, lambda: True)()
    _after_turns(THAW_TURNS if asked else 0, work.cancel)


def _after_turns(turns: int, act: Callable[[], object]) -> None:
    if turns > 0:
        asyncio.get_running_loop().call_soon(_after_turns, turns - 1, act)
    else:
        act()
