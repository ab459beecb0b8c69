"""What a snapshot can do. Its fields are in _snapshot.py, which is generated."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, cast

from ._names import Priority

if TYPE_CHECKING:
    from ._snapshot import Rule, Snapshot


class SnapshotMethods:  # the place for further base classes of Snapshot
    """The methods of Snapshot."""

    rules: Tuple[Rule, ...]
    _document: Dict[str, Any]

    def remaining(self, priority: Priority = "background") -> Optional[int]:
        """Whole units left for a priority, the least over all rules; None without rules."""
        if priority == "background":
            return min((rule.remaining_background for rule in self.rules), default=None)
        return min((rule.remaining for rule in self.rules), default=None)

    def __str__(self) -> str:
        """A short table: state, gate, calls in flight, rules, who waits."""
        from ._snapshot_table import text

        return text(cast("Snapshot", self))

    def _repr_html_(self) -> str:
        """The same table in a notebook."""
        from ._snapshot_table import html

        return html(cast("Snapshot", self))

    def to_dict(self) -> Dict[str, Any]:
        """The object that `shmlimit status --json` prints, with its keys: ready for json.dumps. (What comes next, which
        the tool finds out from the others, is not in it: `next_change`, `warnings`.)"""
        return deepcopy(self._document)
