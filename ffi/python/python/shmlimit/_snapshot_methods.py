"""The methods of a snapshot. Its fields are in _snapshot.py, which is generated."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, cast

from ._names import Priority

if TYPE_CHECKING:
    from ._snapshot import Rule, Snapshot


class SnapshotMethods:  # further base classes of Snapshot belong here
    """The methods of Snapshot."""

    rules: Tuple[Rule, ...]
    _document: Dict[str, Any]

    def remaining(self, priority: Priority = "background") -> Optional[int]:
        """Whole units left for a priority: the minimum over all rules; None without rules."""
        if priority == "background":
            return min((rule.remaining_background for rule in self.rules), default=None)
        return min((rule.remaining for rule in self.rules), default=None)

    def __str__(self) -> str:
        """A short table: state, gate, calls in flight, rules, waiting calls."""
        from ._snapshot_table import text

        return text(cast("Snapshot", self))

    def _repr_html_(self) -> str:
        """The same table for a notebook."""
        from ._snapshot_table import html

        return html(cast("Snapshot", self))

    def to_dict(self) -> Dict[str, Any]:
        """The object that `shmlimit status --json` prints, with the same keys: ready for json.dumps. It does not
        contain `next_change` and `warnings`, which the tool derives from the other keys."""
        return deepcopy(self._document)
