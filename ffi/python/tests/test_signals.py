"""Ctrl-C and the end of a program, with real signals to real child processes."""

import os
import signal
import subprocess
import sys
import time

import pytest

from shmlimit import Limiter

from .conftest import eventually, state, unix_only

signals = unix_only("a process cannot send another one a signal")
WAIT = """
import shmlimit, sys
limiter = shmlimit.Limiter("one")
print("ready", flush=True)
try:
    {wait}
except KeyboardInterrupt:
    now = limiter.snapshot()
    print("interrupted", now.in_flight, len(now.queue), flush=True)
    sys.exit(3)
"""
WAYS = {
    "acquire": "limiter.acquire()",
    "acquire with a timeout": "limiter.acquire(timeout=600)",
    "with": "with limiter.acquire(priority='user') as grant: print('granted')",
    "decorator": "limiter.limit(print)('granted')",
}


def child(text, **keywords):
    return subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **keywords
    )


@pytest.mark.parametrize("way", WAYS)
@signals
def test_ctrl_c_ends_a_wait_at_once_and_leaves_the_queue(one, way):
    held = one.acquire()
    waiting = child(WAIT.format(wait=WAYS[way]))
    eventually(lambda: len(one.snapshot().queue) == 1)
    began = time.monotonic()
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=60)
    # The signal ends the wait at once. The bound allows for the time that a busy machine needs to end a program.
    assert time.monotonic() - began < 5
    assert (out, waiting.returncode) == ("ready\ninterrupted 1 0\n", 3), err
    assert state(one) == (1, 0, [])
    held.release()


@signals
def test_ctrl_c_ends_asyncio_and_leaves_the_queue(one):
    held = one.acquire()
    text = """
import asyncio, shmlimit
limiter = shmlimit.Limiter("one")
async def main():
    async with limiter.acquire_async():
        print("granted")
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", len(limiter.snapshot().queue))
"""
    waiting = child(text)
    eventually(lambda: len(one.snapshot().queue) == 1)
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=60)
    assert out == "interrupted 0\n", err
    held.release()


@signals
def test_a_signal_with_a_handler_that_returns_does_not_end_the_wait(one):
    held = one.acquire()
    text = """
import shmlimit, signal
limiter = shmlimit.Limiter("one")
signal.signal(signal.SIGUSR1, lambda *_: print("heard", flush=True))
with limiter.acquire():
    print("granted", flush=True)
"""
    waiting = child(text)
    eventually(lambda: len(one.snapshot().queue) == 1)
    for _ in range(3):
        waiting.send_signal(signal.SIGUSR1)
        assert waiting.stdout.readline() == "heard\n"
    assert len(one.snapshot().queue) == 1
    held.release()
    out, err = waiting.communicate(timeout=60)
    assert (out, waiting.returncode) == ("granted\n", 0), err


@signals
def test_a_handler_s_exception_ends_the_wait(one):
    held = one.acquire()
    text = """
import shmlimit, signal
limiter = shmlimit.Limiter("one")
class Alarm(Exception): pass
def ring(*_): raise Alarm
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    limiter.acquire()
except Alarm:
    print("alarm", len(limiter.snapshot().queue))
"""
    out, err = child(text).communicate(timeout=60)
    assert out == "alarm 0\n", err
    held.release()


@signals
def test_ctrl_c_reaches_the_main_thread_while_others_wait(one):
    held = one.acquire()
    text = """
import os, shmlimit, threading
limiter = shmlimit.Limiter("one")
try:
    threading.Thread(target=limiter.acquire, daemon=True).start()
    threading.Event().wait()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    waiting = child(text)
    eventually(lambda: len(one.snapshot().queue) == 1)
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=60)
    assert (out, err, waiting.returncode) == ("interrupted\n", "", 0)
    held.release()


def test_a_program_exits_cleanly_while_daemon_threads_wait_and_call(directory):
    """Threads that still run when the interpreter shuts down must not crash the program."""
    text = """
import shmlimit, threading, time
one = shmlimit.Limiter("one", concurrency=1)
busy = shmlimit.Limiter("busy", rate="2000/s", burst=1)
held = one.acquire()
def call():
    while True:
        with busy.acquire(): pass
def wait():
    one.acquire()
for what in [call, call, wait, wait]:
    threading.Thread(target=what, daemon=True).start()
while len(one.snapshot().queue) < 2: time.sleep(0.001)
print("bye")
"""
    for _ in range(5):
        ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
        assert (ended.stdout, ended.stderr, ended.returncode) == ("bye\n", "", 0)


def test_r138_a_child_killed_in_the_queue_does_not_block_others(one):
    held = one.acquire()
    waiting = child(WAIT.format(wait="limiter.acquire()"))
    eventually(lambda: len(one.snapshot().queue) == 1)
    waiting.kill()
    waiting.communicate(timeout=60)
    held.release()
    one.acquire(timeout=30).release()
    assert state(one) == (0, 0, [])


@signals
def test_a_stopped_holder_of_a_permit_keeps_it_and_others_time_out(one):
    text = "import shmlimit; g = shmlimit.Limiter('one').acquire(); print('held', flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    os.kill(holder.pid, signal.SIGSTOP)
    try:
        with pytest.raises(Exception) as raised:
            Limiter("one").acquire(timeout=0.2)
        assert getattr(raised.value, "reason", None) == "concurrency"
    finally:
        os.kill(holder.pid, signal.SIGCONT)
        holder.communicate("\n", timeout=60)


def test_destructors_at_interpreter_exit_can_use_the_library(one):
    text = """
import sys, shmlimit
limiter = shmlimit.Limiter("one")
class Last:
    def __init__(self):
        self.grant = limiter.acquire()
    def __del__(self):
        for call in [
            lambda: limiter.acquire(nonsense=1),
            lambda: limiter.acquire(timeout=0.01),
            lambda: print(self.grant.record(200).outcome_class),
            lambda: self.grant.record(200),
            lambda: print(limiter.acquire()),
        ]:
            try:
                call()
            except Exception as error:
                print(type(error).__name__)
sys.modules["last"] = Last()
"""
    ended = child(text)
    out, err = ended.communicate(timeout=60)
    said = ["TypeError", "Refused", "ok", "Error", '<shmlimit.Grant of "one", open>']
    assert (out.splitlines(), ended.returncode) == (said, 0), err
    assert state(one) == (0, 0, [])


def test_a_second_interpreter_of_a_process_is_rejected():
    text = """
import shmlimit
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
other = interpreters.create()
run = getattr(interpreters, "exec", None) or interpreters.run_string
try:
    said = run(other, "import shmlimit")
except Exception as error:
    said = error
print(said)
"""
    ended = child(text)
    out, err = ended.communicate(timeout=60)
    assert "ImportError" in out, err
