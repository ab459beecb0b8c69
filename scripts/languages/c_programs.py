"""The C and C++ programs that are compiled and run on every platform (scripts/languages/c-tests,
scripts/platforms/windows-c): their names, their arguments, and whether they succeeded."""
import contextlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STRICT = ["-g", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", str(ROOT / "include")]
TESTS = ["arguments", "cancel", "codes", "forks", "handles", "nothing_left", "opening", "paths", "processes", "smoke",
         "snapshot", "test_clock", "threads", "waits"]
# Windows has neither fork nor pthread_cancel.
ONLY_ON = {"cancel": "linux", "forks": "linux"}


# The tests of shmlimit.hpp, with their additional compiler options.
HPP_TESTS = {"hpp_codes": ["-fno-exceptions"], "hpp_throws": []}
HPP_STANDARDS = ["c++17", "c++20"]


class Program:
    """A source file, as C or as C++, with a standard and additional compiler options."""

    def __init__(self, source, cpp, standard=None, more=()):
        self.source, self.cpp = source, cpp
        self.name = f"{source.stem}.{standard.replace('c++', 'cpp') if standard else 'cpp' if cpp else 'c'}"
        self.language = [*(["-x", "c++"] if cpp else []), f"-std={standard or ('c++17' if cpp else 'c11')}", *more]

    def arguments(self, directory, url):
        if self.source.stem == "worker":
            return ["tmdb", "--dir", directory, "--count", "6", "--priority", "user", "--url", url]
        if self.source.stem == "event_loop":
            return ["tmdb", "--dir", directory, "--count", "20", "--at-once", "5"]
        return [directory]


def programs(chosen, platform):
    """The programs with these names, or all that exist on a platform. A test is compiled as both languages, an
    example as one."""
    tests = [ROOT / "ffi/tests/c" / f"{name}.c" for name in TESTS if ONLY_ON.get(name, platform) == platform]
    every = [Program(source, cpp) for source in tests for cpp in (False, True)]
    every += [Program(ROOT / "examples/c" / f"{name}.c", False) for name in ("event_loop", "worker")]
    every += [Program(ROOT / "examples/cpp/worker.cpp", True)]
    every += [Program(ROOT / "ffi/tests/c" / f"{name}.cpp", True, standard, more) for name, more in HPP_TESTS.items()
              for standard in HPP_STANDARDS]
    return [program for program in every if not chosen or program.source.stem in chosen]


def environment():
    """This process's environment, without the variables that limiters read."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SHMLIMIT_", "ANIVAULT_"))}
    # The Wine directory of scripts/platforms/wine.
    kept.update({name: os.environ[name] for name in ["SHMLIMIT_WINE"] if name in os.environ})
    kept.update(TEST_WATCHED="1", ASAN_OPTIONS="detect_leaks=1")
    return kept


def output(command, seconds, **options):
    """The exit code of a command and everything that it printed. Raises `subprocess.TimeoutExpired` after
    `seconds`.

    The output goes to a file. A pipe would end only when every process that inherited it has ended, and the first
    program under Wine leaves services behind that live as long as any other program."""
    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        done = subprocess.run([str(word) for word in command], env=environment() | options.pop("env", {}), stdout=printed,
                              stderr=subprocess.STDOUT, timeout=seconds, **options)
        printed.seek(0)
        return done.returncode, printed.read()


def ran(program, command, url, named=str, seconds=300):
    """None, or the error. `named` is the directory as the program sees it, `seconds` is the time limit."""
    # The event loop needs an input that stays open; the other programs read to its end.
    read, write = os.pipe()
    if program.source.stem != "event_loop":
        os.close(write)
    with tempfile.TemporaryDirectory() as directory:
        try:
            code, printed = output([*command, *program.arguments(named(directory), url)], seconds, stdin=read)
            wrong = code != 0 or (program.source.stem == "worker" and '"ok": 6' not in printed)
            return f"exit code {code}\n{printed}" if wrong else None
        except subprocess.TimeoutExpired:
            return f"still runs after {seconds} s"
        finally:
            os.close(read)
            if program.source.stem == "event_loop":
                os.close(write)


@contextlib.contextmanager
def serving(work):
    """A web server with one page, and its address."""
    (work / "www").mkdir()
    (work / "www" / "movie").write_text("{}")
    server = subprocess.Popen([sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory",
                               work / "www"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield f"http://127.0.0.1:{re.search(r'port ([0-9]+)', server.stdout.readline())[1]}/movie"
    finally:
        server.kill()
        server.wait()
