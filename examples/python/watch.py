#!/usr/bin/env python3
"""Makes calls within two limits at once, and prints what the limiter does: who waits, what is refused, what changes.

    pip install ./ffi/python
    python examples/python/watch.py 12
"""

import logging
import sys

from shmlimit import Limiter, Refused, Transition, WaitNotice


def waits(notice: WaitNotice) -> None:
    print(f"a {notice.priority} call waits for {dict(notice.cost)}")


def refused(refusal: Refused) -> None:
    print(f"refused by {refusal.rule}: {refusal.reason}, again in {refusal.retry_after:.1f} s")


def changes(transition: Transition) -> None:
    print(f"{transition.from_state} -> {transition.to_state}: {transition.reason}")


def main(calls: int) -> None:
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    limiter = Limiter(
        "watched",
        rate=["10/s", "tokens=3000/min"],
        on_mismatch="update",
        on_wait=waits,
        on_refused=refused,
        on_transition=changes,
    )
    for _ in range(calls):
        try:
            with limiter.acquire(cost={"tokens": 300}, timeout=2) as grant:
                grant.record(200)
        except Refused:
            break
    print(limiter.snapshot())


main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
