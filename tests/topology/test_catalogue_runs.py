"""The contract suite of `catalogue_runs`, organisations on two servers."""

from tests.contract.test_catalogue_runs import *  # noqa: F403  every test of it, with this folder's backend
