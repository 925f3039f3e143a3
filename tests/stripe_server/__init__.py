"""Server that imitates Stripe, for tests: `StripeServer`, with transports for one process and for HTTP."""

from tests.stripe_server.errors import ConnectionFault
from tests.stripe_server.server import Fault, StripeServer
from tests.stripe_server.transports import HttpServer, InProcessClient

__all__ = ["ConnectionFault", "Fault", "HttpServer", "InProcessClient", "StripeServer"]
