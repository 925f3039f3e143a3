"""The contract suite of `unit_of_work`, organisations on two servers."""

from tests.contract.test_unit_of_work import *  # noqa: F403  every test of it, with this folder's backend
