"""Matching in PostgreSQL."""

from typing import Final

from adapters.postgres.table import Table
from domain.matching.model import JudgeSettings

JUDGE_SETTINGS: Final = Table(
    JudgeSettings,
    "judge_settings",
    conflicts={
        "judge_settings_pkey": "Somebody else set the judge at the same moment; read its settings and try again."
    },
)
