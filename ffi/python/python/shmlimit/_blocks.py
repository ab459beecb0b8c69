"""The grants of the `with limiter:` blocks that are running."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # like typing.TYPE_CHECKING; importing typing takes longer than importing this whole package
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Dict, List, Optional, Set, Tuple

    from ._shmlimit import Grant
    from ._shmlimit import Limiter as _Limiter

    # The code of the frame that entered; the object that entered and a number that grows, if it was by hand.
    _Entry = Tuple[CodeType, Optional[Tuple[int, int]], Grant]

# Methods that enter a block by hand, for an object that leaves it in another method.
_ENTERS = frozenset(("__enter__", "__aenter__", "enter_context", "enter_async_context"))
# Methods with which a subclass of Limiter replaces those of Limiter.
_OF_A_LIMITER = frozenset(("__enter__", "__exit__", "__aenter__", "__aexit__"))
# The flags of code whose frame can be suspended: generators, coroutines and asynchronous generators.
_SUSPENDS = 0x20 | 0x80 | 0x200


class Blocks:
    """Finds the grant of a block when the block ends.

    A `with` statement enters and leaves in the same frame, even if threads, tasks and generators are suspended in
    between. So grants are stored by frame, and the grants of one frame are a stack. Only the frame itself adds to
    its stack.

    contextlib.ExitStack enters and leaves in different frames, and so does a class that calls `limiter.__enter__()`
    in its own `__enter__`. The methods of one object enter and leave, so such a grant is found by the object. Of any
    other code that does this by hand, it is not known which grant it means: see `_left_over`.

    The id of a frame that has ended may be that of a later frame. So the frame's code is compared too, and a frame
    takes its newest grant, which it entered itself. Every operation here is a single operation of a dict or a list,
    so no lock is needed.
    """

    __slots__ = ("_count", "_grants")

    def __init__(self) -> None:
        self._grants: Dict[int, List[_Entry]] = {}
        self._count = 0

    def enter(self, block: FrameType, grant: Grant) -> None:
        """Stores the grant until the block ends."""
        code = block.f_code
        by_hand = None
        if code.co_name in _ENTERS:
            block = _outside(block, grant.limiter)
            code = block.f_code
            owner = _owner(block) if code.co_name in _ENTERS else None
            if owner is not None:
                # Two threads may get the same number; they use different objects, or one that orders nothing.
                self._count += 1
                by_hand = (owner, self._count)
        self._grants.setdefault(id(block), []).append((code, by_hand, grant))

    def leave(self, block: FrameType, limiter: _Limiter) -> Grant:
        """Removes and returns the grant of the innermost block of this frame."""
        every = self._grants
        entries = every.get(id(block))
        try:
            if entries and entries[-1][0] is block.f_code:
                grant = entries.pop()[2]
                if not entries:
                    every.pop(id(block), None)
                return grant
        except IndexError:  # another thread removed it first
            pass
        outside = _outside(block, limiter)
        if outside is not block:
            return self.leave(outside, limiter)
        left = self._of_object(_owner(block)) or self._left_over()
        if left is None:
            raise RuntimeError(
                f"limiter {limiter.name!r} is not in use by any `with` block: it was left more often than entered"
            )
        return left

    def _of_object(self, owner: Optional[int]) -> Optional[Grant]:
        """The newest grant that the methods of this object have entered."""
        found = None
        for frame, entries in list(self._grants.items()):
            for entry in list(entries):
                by_hand = entry[1]
                if by_hand is not None and by_hand[0] == owner and (found is None or by_hand[1] > found[0]):
                    found = (by_hand[1], frame, entry)
        return None if found is None else self._take(found[1], found[2])

    def _left_over(self) -> Optional[Grant]:
        """A grant that was entered by hand, as far as that is known. Of several, the newest.

        A `with` statement in a function is one of a running frame. In a generator or coroutine, it may be one of a
        suspended frame. A grant that is done is returned before one of a block, so that a permit is given back late
        rather than early.
        """
        running = _running()

        def rank(one: Tuple[int, _Entry]) -> int:
            frame, (code, _, grant) = one
            if frame not in running and not code.co_flags & _SUSPENDS:
                return 0
            return 1 if grant.done else 3 if frame in running else 2

        every = [(frame, entry) for frame, entries in list(self._grants.items()) for entry in list(entries)]
        for frame, entry in sorted(reversed(every), key=rank):
            grant = self._take(frame, entry)
            if grant is not None:
                return grant
        return None

    def _take(self, frame: int, entry: _Entry) -> Optional[Grant]:
        """Removes this entry, unless another thread has removed it."""
        entries = self._grants.get(frame, [])
        try:
            entries.remove(entry)
        except ValueError:
            return None
        if not entries:
            self._grants.pop(frame, None)
        return entry[2]


def _outside(frame: FrameType, limiter: _Limiter) -> FrameType:
    """The frame with the block. A subclass may have its own `__enter__` and `__exit__`, which call those of
    Limiter: the block is in the frame that called them."""
    while frame.f_back is not None and frame.f_code.co_name in _OF_A_LIMITER and _first_argument(frame) is limiter:
        frame = frame.f_back
    return frame


def _owner(frame: FrameType) -> Optional[int]:
    """The object whose method the frame runs."""
    first = _first_argument(frame)
    if first is None:
        return None
    # ExitStack.pop_all() moves this list to another stack.
    exits = getattr(first, "__dict__", {}).get("_exit_callbacks")
    return id(first if exits is None else exits)


def _first_argument(frame: FrameType) -> object:
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


def _running() -> Set[int]:
    """The frames that run now, in all threads."""
    frames: Set[int] = set()
    for innermost in sys._current_frames().values():
        frame: Optional[FrameType] = innermost
        while frame is not None:
            frames.add(id(frame))
            frame = frame.f_back
    return frames
