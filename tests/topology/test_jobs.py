"""The contract suite of `jobs`, organisations on two servers."""

from tests.contract.test_jobs import *  # noqa: F403  every test of it, with this folder's backend
