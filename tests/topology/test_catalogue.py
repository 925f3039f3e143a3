"""The contract suite of `catalogue`, organisations on two servers."""

from tests.contract.test_catalogue import *  # noqa: F403  every test of it, with this folder's backend
