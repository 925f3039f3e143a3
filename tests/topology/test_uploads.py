"""The contract suite of `uploads`, organisations on two servers."""

from tests.contract.test_uploads import *  # noqa: F403  every test of it, with this folder's backend
