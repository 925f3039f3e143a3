"""The contract suite of `access`, organisations on two servers."""

from tests.contract.test_access import *  # noqa: F403  every test of it, with this folder's backend
