"""The Python package as a wheel (binary distribution format 1.0)."""

import hashlib
import io
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Final

_DAY: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a ZIP file can state: contents alone make the bytes."""
_METADATA: Final = """Metadata-Version: 2.4
Name: joinery-client
Version: {version}
Summary: The Python client of the Joinery API: typed, with and without asyncio.
License-Expression: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: httpx<1,>=0.27
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{readme}"""
_WHEEL: Final = """Wheel-Version: 1.0
Generator: joinery
Root-Is-Purelib: true
Tag: py3-none-any
"""


def wheel(files: Mapping[str, str], readme: str, version: str) -> bytes:
    """The wheel's bytes. `files` are the texts by their paths below site-packages."""
    info = f"joinery_client-{version}.dist-info"
    contents = {path: text.encode() for path, text in sorted(files.items())}
    contents[f"{info}/METADATA"] = _METADATA.format(version=version, readme=readme).encode()
    contents[f"{info}/WHEEL"] = _WHEEL.encode()
    record = "".join(f"{path},{_digest(body)},{len(body)}\n" for path, body in contents.items())
    contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, body in contents.items():
            entry = zipfile.ZipInfo(path, _DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever it is made
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, body)
    return made.getvalue()


def _digest(body: bytes) -> str:
    return "sha256=" + urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
