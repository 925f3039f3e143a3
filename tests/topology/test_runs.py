"""The contract suite of `runs`, organisations on two servers."""

from tests.contract.test_runs import *  # noqa: F403  every test of it, with this folder's backend
