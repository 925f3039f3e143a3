"""Contract tests of `request_logs` with organisations on two servers."""

from tests.contract.test_request_logs import *  # noqa: F403  all tests, with this folder's backend
