"""The contract suite of `storage`, organisations on two servers."""

from tests.contract.test_storage import *  # noqa: F403  every test of it, with this folder's backend
