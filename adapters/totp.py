"""Time-based one-time passwords by pyotp, with QR codes by segno."""

from datetime import datetime

import pyotp
import segno

from domain.people.ports import Enrolment

ISSUER = "Joinery"
SECONDS = 30
_STEP_OFFSETS = (0, -1, 1)
"""Accepted time steps relative to the current one, because clocks differ and people type slowly."""


class TotpCodes:
    """OneTimeCodes (domain/people/ports.py)."""

    def secret(self) -> str:
        return pyotp.random_base32()

    def enrolment(self, secret: str, account: str) -> Enrolment:
        address = pyotp.TOTP(secret).provisioning_uri(name=account, issuer_name=ISSUER)
        picture = segno.make(address, error="m").svg_inline(
            scale=4, border=4, light="#fff", svgclass="qr", lineclass=None
        )
        return Enrolment(secret, picture)

    def step(self, secret: str, code: str, now: datetime) -> int | None:
        if len(code) != 6 or not (code.isascii() and code.isdigit()):
            return None
        codes, current = pyotp.TOTP(secret), int(now.timestamp()) // SECONDS
        steps = [
            current + offset
            for offset in _STEP_OFFSETS
            if pyotp.utils.strings_equal(codes.generate_otp(current + offset), code)
        ]
        return steps[0] if steps else None
