"""What ends a mirror."""

from entrypoints.errors import CommandError


class MirrorError(CommandError):
    """The copy cannot go on as it is; the sentence says why, and what to do."""


class Gone(MirrorError):
    """The export's files are there no more: another export is needed."""


class Refused(MirrorError):
    """The service refused a request for good."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        self.status, self.code = status, code
        super().__init__(f"The service answers {status} {code}: {detail}")
