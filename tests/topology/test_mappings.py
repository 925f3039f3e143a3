"""The contract suite of `mappings`, organisations on two servers."""

from tests.contract.test_mappings import *  # noqa: F403  every test of it, with this folder's backend
