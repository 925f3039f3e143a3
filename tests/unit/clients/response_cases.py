"""Invalid responses, such as those of proxies: a follower retries each of them, and a call fails with an error of the client."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ResponseCase:
    """Response with the expected error of a call and the expected Retry-After; each character of `body` and the headers is one byte."""

    name: str
    status: int
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    error: str = "ServerError"
    retry_after: float | None = None
    longest_pause: float = 30.0

    def __str__(self) -> str:
        return self.name


_DEEP = "[" * 200_000


def _build_body_cases() -> list[ResponseCase]:
    errors = ("null", '{"a":["b"]}', '["overloaded"]', "1", "[null]", '"text"', '[["a"]]', '[{"field":1}]')
    found = [ResponseCase(f"errors {one}", 503, f'{{"errors":{one}}}') for one in errors]
    odd = '{"code":7,"detail":{"a":1},"doc_url":5,"request_id":["r"],"errors":[]}'
    found += [
        ResponseCase("fields of other types", 502, odd),
        ResponseCase("too deep", 502, _DEEP),
        ResponseCase("not UTF-8", 502, "\xff\xfe"),
    ]
    found += [ResponseCase(str(status), status, "<html>") for status in (500, 501, 505, 521, 530, 599)]
    return [*found, ResponseCase("408", 408, "", error="JoineryError")]


def _build_success_cases() -> list[ResponseCase]:
    bodies = {
        "HTML": "<html>Sign in",
        "nothing": "",
        "an empty object": "{}",
        "null": "null",
        "a list": "[]",
        "a text": '"a"',
        "too deep": _DEEP,
        "not UTF-8": '\xff\xfe{"x":1}',
        "fields that are null": '{"data":null,"next_cursor":null,"caught_up":null,"status":null}',
        "data that is no list": '{"data":{},"next_cursor":"c","caught_up":true}',
    }
    found = [ResponseCase(f"200 with {name}", 200, body, error="UnexpectedResponse") for name, body in bodies.items()]
    return [*found, ResponseCase("204", 204, error="UnexpectedResponse")]


def _build_pause_cases() -> list[ResponseCase]:
    plain = (
        "\xb2",
        "-5",
        "nan",
        "inf",
        "1.5",
        "",
        ",",
        "Sun, 99 Foo",
        "x" * 10,
        "Fri, 31 Dec 99999999999 23:59:59 GMT",
    )
    found = [ResponseCase(f"Retry-After {text!r}", 503, headers={"retry-after": text}) for text in plain]
    long = {"9" * 12: 999999999999.0, "7200": 7200.0}
    found += [
        ResponseCase(f"Retry-After {text}", 429, "", {"retry-after": text}, "RateLimited", seconds, 3600.0)
        for text, seconds in long.items()
    ]
    return [*found, ResponseCase("Retry-After 2", 503, "", {"retry-after": "2"}, retry_after=2.0)]


CASES = [*_build_body_cases(), *_build_success_cases(), *_build_pause_cases()]
LONG_DELAYS = ["9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 -2359"]
"""Excessive values of Retry-After: a follower waits at most one hour."""
