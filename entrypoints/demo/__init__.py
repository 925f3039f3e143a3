"""`joinery up --demo`: an organisation that reads the feeds of two invented vendors, served from this machine."""

from entrypoints.demo.demonstration import demonstrate, prepare_environment

__all__ = ["demonstrate", "prepare_environment"]
