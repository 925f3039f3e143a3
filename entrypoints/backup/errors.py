"""What backups refuse to do."""


class BackupError(Exception):
    """A backup cannot be made or restored; the message says why and what to do."""
