"""The contract suite of `tables`, organisations on two servers."""

from tests.contract.test_tables import *  # noqa: F403  every test of it, with this folder's backend
