"""The real store, held to the contract."""

import pytest

from tests.store import contract

pytestmark = pytest.mark.postgres


class TestStart(contract.StartContract):
    pass


class TestClaim(contract.ClaimContract):
    pass


class TestSeq(contract.SeqContract):
    pass


class TestGate(contract.GateContract):
    pass


class TestLast(contract.LastContract):
    pass


class TestSettle(contract.SettleContract):
    pass


class TestDoubt(contract.DoubtContract):
    pass


class TestEvidence(contract.EvidenceContract):
    pass


class TestOperator(contract.OperatorContract):
    pass
