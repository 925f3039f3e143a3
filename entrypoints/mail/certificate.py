"""The certificate for STARTTLS, read again when it is renewed."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from entrypoints.settings import SettingsError


@dataclass(slots=True)
class Certificate:
    """Files of a certificate chain and its key, and the context that connections use."""

    chain: Path
    key: Path
    context: ssl.SSLContext
    _seen: tuple[int, int]

    @classmethod
    def load(cls, chain: Path, key: Path) -> "Certificate":
        """Raises SettingsError for files that are no pair."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            seen = _stamps(chain, key)
            context.load_cert_chain(chain, key)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"JOINERY_MAIL_TLS_CERTIFICATE and JOINERY_MAIL_TLS_KEY cannot be used: {error}."
            ) from error
        return cls(chain, key, context, seen)

    def renew(self) -> bool:
        """Whether other files lie there by now; they serve from the next connection on. Raises OSError, SSLError."""
        seen = _stamps(self.chain, self.key)
        if seen == self._seen:
            return False
        self.context.load_cert_chain(self.chain, self.key)
        self._seen = seen
        return True


def _stamps(chain: Path, key: Path) -> tuple[int, int]:
    return chain.stat().st_mtime_ns, key.stat().st_mtime_ns
