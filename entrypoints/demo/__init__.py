"""`joinery up --demo`: an organisation that reads the feeds of two invented vendors, served from this machine."""

from entrypoints.demo.addressing import prepare_environment
from entrypoints.demo.demonstration import demonstrate

__all__ = ["demonstrate", "prepare_environment"]
