"""The contract suite of `match_index`, organisations on two servers."""

from tests.contract.test_match_index import *  # noqa: F403  every test of it, with this folder's backend
