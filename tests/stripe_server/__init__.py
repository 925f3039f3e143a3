"""Server that imitates Stripe, for tests, at the version of the API of the SDK.

In one process: `StripeClient(server.key, http_client=InProcessClient(server))`. Over HTTP: `with HttpServer(server) as
http` and `base_addresses={"api": http.url}`, or `python -m tests.stripe_server` with the control routes `/_control/…`.

The server has one virtual clock, `server.now`; only `advance` and test clocks move it, and the creation of a test clock
sets it. Parameters, answers and events that deviate from Stripe's specification, and parameters that the server does
not implement, are in `server.violations`; tests call `assert_valid` at their end. Prorations follow the billing mode
`flexible` with `proration_discounts: included`: a proration credits the last billed amount, without its discounts.
"""

from tests.stripe_server.errors import ConnectionFault
from tests.stripe_server.server import Fault, StripeServer
from tests.stripe_server.transports import HttpServer, InProcessClient, post_webhook

__all__ = ["ConnectionFault", "Fault", "HttpServer", "InProcessClient", "StripeServer", "post_webhook"]
