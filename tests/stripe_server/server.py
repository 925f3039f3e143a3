"""Server that imitates Stripe: requests, idempotency, faults and webhooks, on a virtual clock."""

import hashlib
import hmac
import json
import random
import re
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import stripe

from tests.stripe_server.errors import ApiError, ConnectionFault, InvalidParameters
from tests.stripe_server.periods import DAY
from tests.stripe_server.routes import ROUTES
from tests.stripe_server.store import Document
from tests.stripe_server.subscriptions import Subscriptions
from tests.stripe_server.validation import find_event_violations, find_violations, read_parameters

__all__ = ["ROUTES", "Fault", "StripeServer"]

Answer = tuple[int, dict[str, str], bytes]
_ERRORS = {
    402: {"type": "card_error", "code": "card_declined", "decline_code": "generic_decline",
          "message": "Your card was declined."},
    409: {"type": "invalid_request_error", "code": "lock_timeout", "message": "The object is locked."},
    429: {"type": "invalid_request_error", "code": "rate_limit", "message": "Too many requests."},
    500: {"type": "api_error", "message": "An unknown error occurred."},
    503: {"type": "api_error", "message": "Stripe is temporarily unavailable."},
}  # fmt: skip
_KINDS = {*map(str, _ERRORS), "timeout", "cut", "500_after", "timeout_after", "cut_after", "delay"}
_NOT_SAVED = frozenset({401, 409, 429})


@dataclass
class Fault:
    """Rule for the next requests that match.

    `kind` is a status (`402`, `409`, `429`, `500`, `503`), `timeout` or `cut` for a request that is not processed;
    `500_after`, `timeout_after` or `cut_after` for one that is; or `delay`, which processes it after `seconds`.
    """

    method: str
    path: str
    kind: str
    times: int = 1
    should_retry: bool | None = None
    seconds: float = 0.0

    def __post_init__(self) -> None:
        assert self.kind in _KINDS, self.kind


@dataclass
class _SavedAnswer:
    fingerprint: str
    created: int
    answer: Answer | None = None


@dataclass
class StripeServer:
    """Account of Stripe in one process.

    Attributes:
        now: Virtual time, in Unix seconds; `advance` moves it.
        faults: Rules that `handle` consumes in order.
        violations: Deviations of answers and events from the specification.
        requests: Method, path, form and answer status of each request.
    """

    key: str = "sk_test_server"
    webhook_secret: str = "whsec_server"
    start: int | None = None
    faults: list[Fault] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    requests: list[tuple[str, str, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = Subscriptions(int(time.time()) if self.start is None else self.start)
        self._answers: dict[str, _SavedAnswer] = {}
        self.lock, self._keys_lock = threading.RLock(), threading.Lock()
        self._delivered = self._checked = 0

    # Requests

    def handle(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Answer a request. Raises ConnectionFault if the client gets no answer."""
        headers = {name.lower(): value for name, value in headers.items()}
        parts = urlsplit(path)
        form = "&".join(filter(None, (parts.query, body.decode())))
        fault = self._take_fault(method, parts.path)
        kind = fault.kind if fault else ""
        if kind in ("timeout", "cut"):
            raise ConnectionFault(kind)
        if kind.isdigit():
            answer = self._build_answer(int(kind), {"error": _ERRORS[int(kind)]})
        else:
            answer = self._answer_once(method, parts.path, form, headers, fault)
        if kind in ("timeout_after", "cut_after"):
            raise ConnectionFault(kind.removesuffix("_after"))
        if fault is not None and fault.should_retry is not None:
            status, sent, answered = answer
            return status, sent | {"Stripe-Should-Retry": "true" if fault.should_retry else "false"}, answered
        return answer

    def _take_fault(self, method: str, path: str) -> Fault | None:
        with self._keys_lock:
            for fault in self.faults:
                if fault.method in ("*", method) and re.search(fault.path, path):
                    fault.times -= 1
                    if fault.times <= 0:
                        self.faults.remove(fault)
                    return fault
        return None

    def _answer_once(self, method: str, path: str, form: str, headers: dict[str, str], fault: Fault | None) -> Answer:
        """Process a request, or repeat the answer of its idempotency key."""
        key = headers.get("idempotency-key") if method == "POST" else None
        kind, delay = (fault.kind, fault.seconds) if fault else ("", 0)
        if key is None:
            time.sleep(delay)
            return self._process(method, path, form, headers, None, kind)
        fingerprint = hashlib.sha256(f"{path}?{form}".encode()).hexdigest()
        with self._keys_lock:
            saved = self._answers.get(key)
            if saved is None or saved.created <= self.state.now - DAY:
                self._answers[key] = _SavedAnswer(fingerprint, self.state.now)
            elif saved.fingerprint != fingerprint:
                return self._build_answer(400, {"error": {"type": "idempotency_error", "message":
                    "Keys for idempotent requests can only be used with the same parameters they were first used "
                    f"with. Try using a key other than '{key}' if you meant to execute a different request."}})  # fmt: skip
            elif saved.answer is None:
                return self._build_answer(409, {"error": {"type": "idempotency_error", "code": "idempotency_key_in_use",
                    "message": "There is currently another in-progress request using this Idempotent Key."}})  # fmt: skip
            else:
                status, sent, body = saved.answer
                return status, sent | {"Idempotent-Replayed": "true"}, body
        time.sleep(delay)
        answer = self._process(method, path, form, headers, key, kind)
        with self._keys_lock:
            if answer[0] in _NOT_SAVED or b'"code": "parameter_' in answer[2]:
                del self._answers[key]
            else:
                self._answers[key].answer = answer
        return answer

    def _build_answer(self, status: int, document: Document, headers: dict[str, str] | None = None) -> Answer:
        sent = {"Content-Type": "application/json", "Request-Id": self.state.create_id("request")} | (headers or {})
        return status, sent | {"Stripe-Version": stripe.api_version}, json.dumps(document).encode()

    def _process(
        self, method: str, path: str, form: str, headers: dict[str, str], key: str | None, kind: str
    ) -> Answer:
        with self.lock:
            request_id = self.state.create_id("request")
            self.state.request = {"id": request_id, "idempotency_key": key}
            try:
                status, document, reference = self._execute(method, path, form, headers)
            finally:
                self.state.request = None
            found = find_violations(reference, document)
            for event in self.state.events[self._checked :]:
                found += find_event_violations(event)
            self._checked = len(self.state.events)
            if found:
                self.violations += [f"{method} {path}: {each}" for each in found]
                status, document = 500, {"error": {"type": "api_error", "message": "; ".join(found)}}
            elif kind == "500_after":
                status, document = 500, {"error": _ERRORS[500]}
            self.requests.append((method, path, form, status))
            sent = {"Request-Id": request_id} | ({"Idempotency-Key": key} if key else {})
            return self._build_answer(status, document, sent)

    def _execute(self, method: str, path: str, form: str, headers: dict[str, str]) -> tuple[int, Document, str]:
        if headers.get("authorization") != f"Bearer {self.key}":
            return (
                401,
                {"error": {"message": "Invalid API Key provided", "type": "invalid_request_error"}},
                "component|error",
            )
        matches = [(route, ids) for route in ROUTES if (ids := route.match(method, path)) is not None]
        if not matches:
            self.violations.append(f"unknown route {method} {path}")
            message = f"Unrecognized request URL ({method}: {path})."
            return 404, {"error": {"message": message, "type": "invalid_request_error"}}, "component|error"
        route, ids = min(matches, key=lambda each: len(each[1]))
        saved = self.state.save() if route.is_atomic else None
        try:
            parameters = read_parameters(f"{method} {route.path}", form)
            document = self.state.render(route.handler(self.state, parameters, *ids))
            if names := parameters.find_ignored():
                self.violations.append(f"{method} {path}: the server does not support {', '.join(names)}")
            for expansion in parameters.get("expand", ()):
                if document["object"] == "list" and not expansion.startswith("data."):
                    raise InvalidParameters(f"This property cannot be expanded ({expansion}).", "expand")
                self.state.expand(document, expansion)
        except ApiError as error:
            if saved is not None:
                self.state.restore(saved)
            return error.status, error.body, "component|error"
        except Exception:
            self.violations.append(traceback.format_exc())
            return 500, {"error": {"message": traceback.format_exc(), "type": "api_error"}}, "component|error"
        return 200, document, f"operations|{method} {route.path}|response"

    # Control

    @property
    def now(self) -> int:
        """Virtual time, in Unix seconds."""
        return self.state.now

    @property
    def tax_rates(self) -> dict[str, float]:
        """Percentage by country of the customer."""
        return self.state.tax_rates

    def advance(self, to: int) -> None:
        """Move the clock, and execute everything that becomes due."""
        with self.lock:
            self.state.advance(to)
            self._check_events()

    def complete_authentication(self, intent: str, *, is_successful: bool = True) -> None:
        """Complete the authentication of a payment or setup intent, as the customer does in the browser."""
        with self.lock:
            self.state.complete_authentication(intent, is_successful=is_successful)
            self._check_events()

    def _check_events(self) -> None:
        for event in self.state.events[self._checked :]:
            self.violations += find_event_violations(event)
        self._checked = len(self.state.events)

    def assert_valid(self) -> None:
        """Assert that no request, answer or event deviated from the specification."""
        assert not self.violations, "\n".join(self.violations)

    @property
    def pending_events(self) -> list[Document]:
        """Events that were not delivered."""
        return self.state.events[self._delivered :]

    def sign(self, body: bytes, at: int) -> dict[str, str]:
        """Return the headers of a webhook."""
        signature = hmac.new(self.webhook_secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        return {"Content-Type": "application/json; charset=utf-8", "Stripe-Signature": f"t={at},v1={signature}"}

    def deliver(
        self, send: Callable[[bytes, dict[str, str]], Any], *, order: str = "in_order", duplicates: float = 0.0,
        drop: float = 0.0, rng: random.Random | None = None, at: int | None = None,
    ) -> int:  # fmt: skip
        """Deliver the pending events.

        Args:
            send: Receives the body and the headers of each webhook.
            order: `in_order`, `reversed` or `shuffled`.
            duplicates: Share of the events that are delivered twice.
            drop: Share of the events that are lost.
            rng: Source of randomness.
            at: Time of the signatures; by default the machine's.

        Returns:
            Number of deliveries.
        """
        rng = rng or random.Random(0)
        with self.lock:
            events, self._delivered = self.pending_events, len(self.state.events)
        events = [each for each in events if rng.random() >= drop]
        events += [each for each in events if rng.random() < duplicates]
        if order == "shuffled":
            rng.shuffle(events)
        for event in events[::-1] if order == "reversed" else events:
            body = json.dumps(event, indent=2).encode()
            send(body, self.sign(body, int(time.time()) if at is None else at))
        return len(events)
