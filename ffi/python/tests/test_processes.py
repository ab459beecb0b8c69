"""multiprocessing with every start method, concurrent.futures, forks and killed processes: the sums are exact."""

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor

import pytest

from shmlimit import Limiter, Refused

from . import work
from .conftest import eventually, unix_only

# The start methods that this system has.
WAYS = [way for way in ["fork", "spawn", "forkserver"] if way in multiprocessing.get_all_start_methods()]


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Children that do not inherit this process's modules must be able to import this package of tests."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    monkeypatch.setenv("PYTHONPATH", root)
    monkeypatch.syspath_prepend(root)


@pytest.mark.parametrize("way", WAYS)
def test_processes_get_exactly_the_budget(directory, way):
    limiter = Limiter("api", rate="300/h", burst=300)
    context = multiprocessing.get_context(way)
    queue = context.Queue()
    children = [context.Process(target=work.take_into, args=(limiter, queue)) for _ in range(3)]
    for child in children:
        child.start()
    mine = work.take_all(limiter)
    theirs = [queue.get(timeout=60) for _ in children]
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert len({pid for pid, _ in theirs}) == 3
    assert mine + sum(count for _, count in theirs) == 300


@pytest.mark.parametrize("way", WAYS)
def test_pools_share_the_budget_and_take_turns(directory, way):
    limiter = Limiter("api", concurrency=1)
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context(way)) as pool:
        done = [pool.submit(work.wait_for_turns, limiter, 20) for _ in range(6)]
        assert sum(one.result(60) for one in done) == 120
    now = limiter.snapshot()
    assert (now.in_flight, now.queue) == (0, ())


def test_a_pool_can_open_the_limiter_by_name(directory):
    Limiter("api", rate="100/h", burst=100)
    with ProcessPoolExecutor(2) as pool:
        assert sum(pool.map(work.open_and_take, ["api"] * 4)) == 100


def test_a_refusal_reaches_the_parent_process_with_its_fields(scarce):
    with ProcessPoolExecutor(1) as pool:
        with pytest.raises(Refused) as raised:
            pool.submit(work.refusal, scarce).result(60)
    assert (raised.value.limiter, raised.value.reason) == ("scarce", "rate")
    assert raised.value.retry_after > 3000


@unix_only("there is no fork")
def test_a_fork_while_other_threads_use_the_limiter_works(directory):
    limiter = Limiter("api", concurrency=2)
    stop = threading.Event()

    def use():
        while not stop.is_set():
            with limiter.acquire(timeout=60):
                pass

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    with limiter.acquire(timeout=30):
                        code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    # The permit of a child that exited without releasing it comes back with the next call.
    eventually(lambda: limiter.acquire(timeout=30).release() or limiter.snapshot().in_flight == 0)


HOLD = "import shmlimit, sys; grant = shmlimit.Limiter('one').acquire(); print('held', flush=True); sys.stdin.read()"


def test_r138_a_killed_child_gives_its_permit_back(one):
    child = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"held\n"
    with pytest.raises(Refused):
        one.try_acquire()
    child.kill()
    child.communicate()
    one.acquire(timeout=30).release()
    assert one.snapshot().in_flight == 0


def test_a_program_that_ends_with_a_grant_out_gives_it_back(one):
    child = subprocess.run([sys.executable, "-c", HOLD], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert (child.returncode, child.stderr) == (0, b"")
    one.acquire(timeout=30).release()
