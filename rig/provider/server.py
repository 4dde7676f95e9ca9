"""The misbehaving receiver itself: verifies, writes down, acts once per key, and answers as the address says."""

import asyncio
from dataclasses import asdict

from rig.provider.behaviour import Behaviour, Plan, plan, read_address
from rig.provider.count import count
from rig.provider.ledger import Arrival, Ledger
from rig.provider.signature import signed_by
from rig.provider.wire import Asked, Connection, answer_json, head


class Receiver:
    """Everything but the sockets. One event loop, no thread."""

    def __init__(self, ledger: Ledger, secrets: tuple[str, ...], seed: int) -> None:
        self._ledger, self._secrets, self._seed = ledger, secrets, seed
        self._at_the_gate: list[tuple[Connection, Arrival]] = []
        self.connections: set[Connection] = set()

    def connection(self) -> Connection:
        return Connection(self, self.connections)

    def asked(self, connection: Connection, asked: Asked) -> None:
        address = read_address(asked.path)
        if address is None:
            self._asked_by_the_test(connection, asked)
        elif not signed_by(self._secrets, asked.headers, asked.body):
            self._ledger.refuse_signature()
            connection.answer(401)
        else:
            chosen = plan(address, self._ledger.seen(address.subject), self._seed)
            key = asked.headers["webhook-id"]
            arrival = self._ledger.arrive(address.subject, key, address.door, chosen, asked.body)
            self._treat(connection, arrival, chosen)

    def _treat(self, connection: Connection, arrival: Arrival, chosen: Plan) -> None:
        connection.on_left = lambda: self._ledger.end(arrival, "left")
        match chosen.behaviour:
            case Behaviour.DROP:
                self._ledger.end(arrival, "cut")
                connection.cut()
            case Behaviour.STALL | Behaviour.HANG:
                pass  # the connection stays open, and silent, for as long as the sender waits
            case Behaviour.GATE:
                self._at_the_gate.append((connection, arrival))
            case Behaviour.DRIP:
                self._drip(connection, arrival, head(200, {}, 0), chosen.delay_seconds)
            case _ if chosen.delay_seconds:
                loop = asyncio.get_running_loop()
                loop.call_later(chosen.delay_seconds, self._answer, connection, arrival, chosen)
            case _:
                self._answer(connection, arrival, chosen)

    def _answer(self, connection: Connection, arrival: Arrival, chosen: Plan) -> None:
        if connection.open and chosen.status is not None:
            wait = chosen.retry_after_seconds
            self._ledger.end(arrival, "answered", chosen.status)
            connection.answer(chosen.status, {} if wait is None else {"retry-after": str(wait)})

    def _drip(self, connection: Connection, arrival: Arrival, left: bytes, wait: float) -> None:
        if not connection.open:
            return
        connection.write(left[:1])
        if len(left) == 1:
            self._ledger.end(arrival, "answered", 200)
            connection.answered()
            return
        asyncio.get_running_loop().call_later(wait, self._drip, connection, arrival, left[1:], wait)

    def _asked_by_the_test(self, connection: Connection, asked: Asked) -> None:
        path, _, query = asked.path.partition("?")
        match asked.method, path:
            case "GET", "/ledger":
                ledger = self._ledger
                answer_json(connection, asdict(count(ledger.arrivals, ledger.refused_signatures)))
            case "GET", "/arrivals":
                since = int(query.removeprefix("since=") or 0)
                answer_json(connection, [asdict(one) for one in self._ledger.arrivals[since:]])
            case "POST", "/open-gate":
                answer_json(connection, {"opened": self._open_gate()})
            case "POST", "/deafen":
                answer_json(connection, {"deafened": self._leave(connection, deafen=True)})
            case "POST", "/close-idle":
                answer_json(connection, {"closed": self._leave(connection, deafen=False)})
            case _:
                connection.answer(404)

    def _open_gate(self) -> int:
        waiting, self._at_the_gate = self._at_the_gate, []
        for connection, arrival in waiting:
            self._answer(connection, arrival, Plan(Behaviour.GATE, True, 200))
        return len(waiting)

    def _leave(self, asking: Connection, *, deafen: bool) -> int:
        """What a firewall (deafen: no word) or an idle timeout (close) does to connections nobody uses."""
        idle = [one for one in self.connections if one.idle and one is not asking]
        for one in idle:
            if deafen:
                one.deaf = True
            else:
                one.close()
        return len(idle)
