"""Importing the package is cheap: it imports no other modules."""

import json
import subprocess
import sys

import shmlimit


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def test_importing_the_package_imports_no_other_modules():
    program = "import sys; before = set(sys.modules); import shmlimit; after = set(sys.modules)\n"
    program += "import json; print(json.dumps(sorted(after - before)))"
    others = {name for name in run(program) if name.split(".")[0] not in ("shmlimit", "__future__")}
    assert others == set()


def test_a_synchronous_call_does_not_import_asyncio(directory):
    program = "import shmlimit; limiter = shmlimit.Limiter('api', rate='9/s'); limiter.acquire().record(200)\n"
    program += "import sys, json; names = ['asyncio', 'inspect', 'dataclasses', 'typing', 'logging']\n"
    program += "print(json.dumps([name for name in names if name in sys.modules]))"
    assert run(program) == []


def test_every_public_name_can_be_used():
    for name in shmlimit.__all__:
        value = getattr(shmlimit, name)
        if isinstance(value, type):
            assert value.__module__ == "shmlimit", name
    assert set(shmlimit.__all__) <= set(dir(shmlimit))
    try:
        shmlimit.Nonsense
        raise AssertionError("found")
    except AttributeError as error:
        assert "Nonsense" in str(error)
