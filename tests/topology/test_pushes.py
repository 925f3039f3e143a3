"""The contract suite of `pushes`, organisations on two servers."""

from tests.contract.test_pushes import *  # noqa: F403  every test of it, with this folder's backend
