"""Every sample of the READMEs runs. The samples of one page run in order, as one program."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import unix_only

PACKAGE = Path(__file__).parent.parent
ROOT = PACKAGE.parent.parent


def samples(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)


@pytest.mark.parametrize(
    "page, count",
    [pytest.param(PACKAGE / "README.md", 8, marks=unix_only("one sample forks")), (ROOT / "README.md", 1), (ROOT / "docs" / "python.md", 8)],
)
def test_the_samples_run_as_one_program(page, count, directory, tmp_path):
    program = tmp_path / "readme.py"
    program.write_text("\n".join(samples(page)))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(samples(page)) == count


def test_the_tests_that_the_guide_shows_pass(directory, tmp_path):
    (tmp_path / "test_guide.py").write_text("\n".join(samples(ROOT / "docs" / "python.md")))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_guide.py"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode == 0 and "5 passed" in done.stdout, done.stdout
