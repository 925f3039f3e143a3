"""Time-based one-time passwords by pyotp, with QR codes by segno."""

from datetime import datetime

import pyotp
import segno

from domain.people.ports import Enrolment

ISSUER = "Joinery"
"""Name of the service that authenticator apps show."""
STEP_SECONDS = 30
"""Length of a time step in seconds."""
_STEP_OFFSETS = (0, -1, 1)
"""Accepted time steps relative to the current one, because clocks differ and people type slowly."""


class TotpCodes:
    """Time-based one-time passwords (port OneTimeCodes in domain/people/ports.py)."""

    def create_secret(self) -> str:
        return pyotp.random_base32()

    def build_enrolment(self, secret: str, account: str) -> Enrolment:
        uri = pyotp.TOTP(secret).provisioning_uri(name=account, issuer_name=ISSUER)
        qr_code = segno.make(uri, error="m").svg_inline(scale=4, border=4, light="#fff", svgclass="qr", lineclass=None)
        return Enrolment(secret, qr_code)

    def find_time_step(self, secret: str, code: str, now: datetime) -> int | None:
        if len(code) != 6 or not (code.isascii() and code.isdigit()):
            return None
        codes, current = pyotp.TOTP(secret), int(now.timestamp()) // STEP_SECONDS
        steps = [
            current + offset
            for offset in _STEP_OFFSETS
            if pyotp.utils.strings_equal(codes.generate_otp(current + offset), code)
        ]
        return steps[0] if steps else None
