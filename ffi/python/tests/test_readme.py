"""Every sample of the README runs, in order, as one program."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def samples():
    return re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S)


def test_the_samples_run_as_one_program(directory, tmp_path):
    program = tmp_path / "readme.py"
    program.write_text("\n".join(samples()))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(samples()) == 7
