"""A real notebook, run by a real kernel."""

import sys

import nbclient
import nbformat
import pytest

OPEN = 'from shmlimit import Limiter\nlimiter = Limiter("note", rate="1000/s", burst=1000, concurrency=1)\nlimiter'
AWAIT = """
async with limiter.acquire_async(timeout=60) as grant:
    print(grant.record(200).outcome_class, limiter.snapshot().in_flight)
"""
WITH = "with limiter.acquire(timeout=60) as grant:\n    print(limiter.snapshot().in_flight)"


@pytest.fixture
def kernel(directory, tmp_path, monkeypatch):
    """A kernel of this Python interpreter, installed only for this test."""
    from ipykernel.kernelspec import install

    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "kernel" / "share" / "jupyter"))
    install(kernel_name="tested", prefix=str(tmp_path / "kernel"))
    return "tested"


def texts(cell):
    return "".join(output.get("text", output.get("data", {}).get("text/plain", "")) for output in cell.outputs)


def test_a_notebook_opens_awaits_and_opens_again(kernel):
    cells = [nbformat.v4.new_code_cell(text) for text in [OPEN, AWAIT, WITH, OPEN, AWAIT, OPEN, WITH]]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name=kernel).execute()
    shown = [texts(cell) for cell in notebook.cells]
    assert shown[0].startswith("<shmlimit.Limiter \"note\" in ")
    assert shown[1] == shown[4] == "ok 0\n"
    assert shown[2] == shown[6] == "1\n"


def test_the_interrupt_button_ends_a_wait(kernel):
    cells = [
        nbformat.v4.new_code_cell(OPEN + "\nheld = limiter.acquire()"),
        nbformat.v4.new_code_cell(
            "import os, signal, threading\n"
            "def press():\n"
            "    while not limiter.snapshot().queue: pass\n"
            "    os.kill(os.getpid(), signal.SIGINT)\n"
            "threading.Thread(target=press).start()\n"
            "try:\n    limiter.acquire()\nexcept KeyboardInterrupt:\n    print('ended', limiter.snapshot().queue)"
        ),
        nbformat.v4.new_code_cell("held.release(); print(limiter.snapshot().in_flight)"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name=kernel).execute()
    assert texts(notebook.cells[1]) == "ended ()\n"
    assert texts(notebook.cells[2]) == "0\n"
    assert sys.version_info >= (3, 9)
