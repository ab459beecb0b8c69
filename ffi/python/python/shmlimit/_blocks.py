"""The grants of the `with limiter:` blocks that are running."""

from __future__ import annotations

TYPE_CHECKING = False  # like typing.TYPE_CHECKING; importing typing takes longer than importing this whole package
if TYPE_CHECKING:
    from types import FrameType
    from typing import Dict, List, Optional

    from ._shmlimit import Grant


class Blocks:
    """Finds the grant of a block when the block ends.

    A `with` statement enters and leaves in the same frame, even if threads, tasks and generators are suspended in
    between. So grants are stored by frame, and the grants of one frame are a stack. Only the frame itself adds to
    its stack. Every operation here is a single operation of a dict or a list, so no lock is needed.
    """

    __slots__ = ("_grants",)

    def __init__(self) -> None:
        self._grants: Dict[int, List[Grant]] = {}

    def enter(self, block: FrameType, grant: Grant) -> None:
        """Stores the grant until the block ends."""
        self._grants.setdefault(id(block), []).append(grant)

    def leave(self, block: FrameType, name: str) -> Grant:
        """Removes and returns the grant of the innermost block of this frame."""
        grants = self._grants.get(id(block))
        grant = _pop(grants)
        if grants is not None and not grants:
            self._grants.pop(id(block), None)
        if grant is None:
            grant = self._of_another_frame()
        if grant is None:
            raise RuntimeError(f"limiter {name!r} is not in use by any `with` block: it was left more often than entered")
        return grant

    def _of_another_frame(self) -> Optional[Grant]:
        """Returns any grant. contextlib.ExitStack, for example, enters and leaves in different frames.

        All grants are equally good here, except that some are done already. A done grant is returned first, so that
        a permit is given back late rather than early.
        """
        every = list(self._grants.values())
        for grants in every:
            for grant in list(grants):
                if grant.done:
                    try:
                        grants.remove(grant)
                    except ValueError:  # another thread removed it first
                        continue
                    return grant
        for grants in reversed(every):
            found = _pop(grants)
            if found is not None:
                return found
        return None


def _pop(grants: Optional[List[Grant]]) -> Optional[Grant]:
    try:
        return grants.pop() if grants else None
    except IndexError:  # another thread removed it first
        return None
