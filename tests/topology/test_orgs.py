"""The contract suite of `orgs`, organisations on two servers."""

from tests.contract.test_orgs import *  # noqa: F403  every test of it, with this folder's backend
