"""The contract suite of `sweeping`, organisations on two servers."""

from tests.contract.test_sweeping import *  # noqa: F403  every test of it, with this folder's backend
