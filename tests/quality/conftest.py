"""Summary of the tasks after the tests."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a table of all tasks, with sums."""
    rows = [
        dict(report.user_properties)
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call" and "task" in dict(report.user_properties)
    ]
    if not rows:
        return
    terminalreporter.section("tasks of the assistant")
    terminalreporter.line(f"{'task':<28}{'passed':>8}{'steps':>7}{'calls':>7}{'tokens':>9}{'dollars':>10}")
    for row in rows:
        terminalreporter.line(_format(row["task"], "no" if row["faults"] else "yes", row))
    sums = {name: sum(row[name] for row in rows) for name in ("steps", "tool_calls", "tokens", "cost_micros")}
    passed = len([row for row in rows if not row["faults"]])
    terminalreporter.line(_format("all", f"{passed}/{len(rows)}", sums))


def _format(name: str, passed: str, row: dict[str, float]) -> str:
    dollars = row["cost_micros"] / 1_000_000
    return f"{name:<28}{passed:>8}{row['steps']:>7}{row['tool_calls']:>7}{row['tokens']:>9}{dollars:>10.4f}"
