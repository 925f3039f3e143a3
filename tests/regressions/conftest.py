"""The backends of the contract suites, and the two servers of the topology suite."""

from tests.contract.conftest import backend, tenant, uow
from tests.topology.conftest import servers

__all__ = ["backend", "servers", "tenant", "uow"]
