"""The contract suite of `sources`, organisations on two servers."""

from tests.contract.test_sources import *  # noqa: F403  every test of it, with this folder's backend
