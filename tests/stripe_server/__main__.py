"""Command `python -m tests.stripe_server`: serves until the process ends, and prints the address."""

import argparse

from tests.stripe_server.server import StripeServer
from tests.stripe_server.transports import HttpServer


def main() -> None:
    """Serve on a loopback port."""
    parser = argparse.ArgumentParser(description="Serve an imitation of Stripe for tests.")
    parser.add_argument("--port", type=int, default=0, help="Port; 0 selects a free one.")
    parser.add_argument("--key", default="sk_test_server", help="API key.")
    parser.add_argument("--webhook-secret", default="whsec_server", help="Secret of the webhooks.")
    parser.add_argument("--start", type=int, help="Virtual time at the start, in Unix seconds; by default now.")
    parser.add_argument("--hold", type=float, default=60.0, help="Seconds until a timeout closes the connection.")
    options = parser.parse_args()
    server = HttpServer(StripeServer(options.key, options.webhook_secret, options.start), options.port, options.hold)
    print(server.url, flush=True)
    server.serve()


if __name__ == "__main__":
    main()
