"""The contract suite of `request_logs`, organisations on two servers."""

from tests.contract.test_request_logs import *  # noqa: F403  every test of it, with this folder's backend
