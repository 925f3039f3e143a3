"""The contract suite of `secrets`, organisations on two servers."""

from tests.contract.test_secrets import *  # noqa: F403  every test of it, with this folder's backend
