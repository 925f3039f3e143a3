"""What an operation refuses, as pages tell it: a sentence, and a sentence beside each field."""

from collections.abc import Mapping
from typing import Any

from domain.kernel.errors import DomainError
from entrypoints.operations.codes import CODES


class Refused(Exception):
    """An operation's problem (RFC 9457): `status`, `code`, `title`, `detail`, and `fields` by dotted path."""

    def __init__(self, problem: Mapping[str, Any], retry_after: str | None = None) -> None:
        self.status: int = problem["status"]
        self.code: str = problem["code"]
        self.title: str = problem["title"]
        self.detail: str = problem["detail"]
        self.request_id: str = problem.get("request_id", "")
        self.problem, self.retry_after = problem, retry_after
        self.fields: dict[str, str] = {}
        for fault in problem.get("errors", ()):
            self.fields.setdefault(fault["field"], fault["detail"])
        super().__init__(self.detail)


def refused(error: DomainError, request_id: str) -> Refused:
    """A use case's own refusal in the same form."""
    code = CODES[error.code]
    faults = [{"field": fault.field, "code": fault.code, "detail": fault.detail} for fault in error.fields]
    told = {"status": code.status, "code": code.name, "title": code.title, "detail": error.detail}
    wait = str(error.retry_after) if error.retry_after is not None else None
    return Refused(told | {"request_id": request_id, "errors": faults}, wait)
