"""The version of the client packages, which stands in their file names."""

from typing import Final

VERSION: Final = "0.1.0"
