"""The contract of the store, one suite for every implementation: see tests/store/bench.py for how to plug one in."""

from tests.store.contracts.claim import (
    ClaimContract,
    GateContract,
    LastContract,
    SeqContract,
    StartContract,
)
from tests.store.contracts.evidence import EvidenceContract, OperatorContract
from tests.store.contracts.settle import DoubtContract, SettleContract

__all__ = [
    "ClaimContract",
    "DoubtContract",
    "EvidenceContract",
    "GateContract",
    "LastContract",
    "OperatorContract",
    "SeqContract",
    "SettleContract",
    "StartContract",
]
