"""A snapshot as a short table: as text, and as HTML for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, List, NamedTuple, Optional, Tuple

if TYPE_CHECKING:
    from ._snapshot import Rule, Snapshot, Waiter

_MOST = 10


class _Table(NamedTuple):
    head: Tuple[str, ...]
    rows: List[Tuple[str, ...]]


def text(snapshot: Snapshot) -> str:
    """The table with columns of equal width."""
    blocks = [f"limiter {snapshot.name} in {snapshot.directory}", _aligned(_facts(snapshot))]
    blocks += [_aligned([table.head, *table.rows]) for table in _tables(snapshot)]
    return "\n\n".join(blocks)


def printable(value: str) -> str:
    """The text without control characters. Other programs choose it, and a terminal must not interpret it as
    commands."""
    return value if value.isprintable() else repr(value)[1:-1]


def html(snapshot: Snapshot) -> str:
    """The table for a notebook. Names come from other programs, so all text is escaped."""
    title = f"limiter {snapshot.name} in {snapshot.directory}"
    facts = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in _facts(snapshot))
    out = f"<table><caption>{escape(title)}</caption>{facts}</table>"
    for table in _tables(snapshot):
        rows = "".join(_row("td", row) for row in table.rows)
        out += f"<table><thead>{_row('th', table.head)}</thead><tbody>{rows}</tbody></table>"
    return out


def _row(cell: str, values: Tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{cell}>{escape(value)}</{cell}>" for value in values) + "</tr>"


def _aligned(rows: List[Tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(value.ljust(width) for value, width in zip(row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def _facts(snapshot: Snapshot) -> List[Tuple[str, ...]]:
    condition = snapshot.condition
    state = f"{condition.state}, offline" if condition.offline else condition.state
    if condition.reason is not None:
        state += f" for {_time(condition.state_for)} ({condition.reason})"
    if condition.eta is not None:
        state += f", next change in {_time(condition.eta)}"
    gate = "open"
    if condition.gate is not None:
        gate = f"closed by {condition.gate.program}, opens in {_time(condition.gate.opens_in)}"
    most = "any number" if condition.concurrency_now is None else str(condition.concurrency_now)
    facts: List[Tuple[str, ...]] = [
        ("state", state),
        ("gate", gate),
        ("in flight", f"{snapshot.in_flight} of {most}"),
        ("waiting", str(len(snapshot.queue))),
        ("processes", str(len(snapshot.participants))),
    ]
    if snapshot.paused is not None:
        end = "until it is resumed" if snapshot.paused.ends_in is None else f"for {_time(snapshot.paused.ends_in)} more"
        reason = "" if snapshot.paused.reason is None else f": {snapshot.paused.reason}"
        facts.insert(1, ("paused", f"by {snapshot.paused.program}, {end}{reason}"))
    return [(name, printable(value)) for name, value in facts]


def _tables(snapshot: Snapshot) -> List[_Table]:
    tables = []
    if snapshot.rules:
        tables.append(_Table(("rule", "limit", "left", "next"), [_rule(rule) for rule in snapshot.rules]))
    if snapshot.queue:
        rows = [_waiter(waiter) for waiter in snapshot.queue[:_MOST]]
        more = len(snapshot.queue) - len(rows)
        if more:
            rows.append((f"and {more} more", "", "", ""))
        tables.append(_Table(("waiting", "priority", "for", "cost"), rows))
    return tables


def _rule(rule: Rule) -> Tuple[str, ...]:
    limit = f"{rule.limit} {rule.unit} per {_time(rule.period)}"
    return rule.name, limit, f"{rule.remaining} of {rule.capacity}", _in(rule.next_in)


def _waiter(waiter: Waiter) -> Tuple[str, ...]:
    cost = ", ".join(f"{amount} {unit}" for unit, amount in waiter.cost.items())
    return f"{printable(waiter.program)} ({waiter.pid})", waiter.priority, _time(waiter.waited_for), cost


def _in(seconds: Optional[float]) -> str:
    return "-" if seconds is None else f"in {_time(seconds)}"


def _time(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 7200:
        return f"{seconds / 60:.3g} min"
    return f"{seconds / 3600:.4g} h"
