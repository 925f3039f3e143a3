"""Fixtures of the contract and topology suites."""

from tests.contract.conftest import backend, tenant, uow
from tests.topology.conftest import servers

__all__ = ["backend", "servers", "tenant", "uow"]
