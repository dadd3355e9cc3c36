"""The command commq: where it is, and how it is asked."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from .errors import CheckFailed, CommandNotFound, CommqError, UsageError


def command() -> str:
    """Path of the command.

    That is ``$COMMQ_COMMAND``, else the one that was installed with this package, else the one in ``$PATH``.
    """
    named = os.environ.get("COMMQ_COMMAND")
    if named:
        if not os.access(named, os.X_OK):
            raise CommandNotFound(f"$COMMQ_COMMAND names {named}, which cannot be executed")
        return named
    for folder in _script_folders():
        path = os.path.join(folder, "commq")
        if os.access(path, os.X_OK) and not _is_python(path):
            return path
    found = shutil.which("commq")
    if found:
        return found
    raise CommandNotFound(
        "the command commq is neither installed with this package nor in $PATH; "
        "pip install commq brings it, and $COMMQ_COMMAND names another"
    )


def _script_folders() -> list[str]:
    """Folders into which pip installs commands: of this Python, of the user, and of pip install --target."""
    folders = [sysconfig.get_path("scripts")]
    if "posix_user" in sysconfig.get_scheme_names():
        folders.append(sysconfig.get_path("scripts", scheme="posix_user"))
    folders.append(str(Path(__file__).parent.parent / "bin"))
    return folders


def _is_python(path: str) -> bool:
    """Whether the file is a script, which would call this package again, and not the command itself."""
    with open(path, "rb") as f:
        return f.read(2) == b"#!"


def arguments(options: Mapping[str, Any]) -> list[str]:
    """Flags of the command for options of Python: ``min_bytes=5`` is ``--min-bytes 5``; None is left out."""
    flags: list[str] = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            flags.append(flag)
        elif isinstance(value, (list, tuple)):
            for one in value:
                flags += [flag, str(one)]
        else:
            flags += [flag, str(value)]
    return flags


def words(stderr: str) -> str:
    """The error in what the command wrote to stderr."""
    _, found, error = ("\n" + stderr.strip()).rpartition("\ncommq: ")
    return (error if found else stderr.strip()) or "it said nothing"


def failure(status: int, stderr: str) -> CommqError:
    """The exception for an exit status."""
    kind = {1: CheckFailed, 2: UsageError}.get(status, CommqError)
    if status < 0:
        return CommqError(f"commq was ended by signal {-status}", status)
    return kind(words(stderr), status)


def notes(stderr: str) -> list[str]:
    """What the command noted and warned of, a text each."""
    found: list[str] = []
    for line in stderr.splitlines():
        if line.startswith("commq: "):
            found.append(line.removeprefix("commq: "))
        elif found:
            found[-1] += "\n" + line
    return found


def run(args: Sequence[str], stdin: str | None = None) -> tuple[str, list[str]]:
    """Runs the command, and returns its answer and its notes. Exit statuses other than 0 are exceptions."""
    done = _run([command(), *args], stdin, subprocess.PIPE)
    return done.stdout.decode(), notes(done.stderr.decode(errors="replace"))


def ask(args: Sequence[str], stdin: str | None = None) -> Any:
    """The answer of a command that prints JSON."""
    return json.loads(run([*args, "--format", "json"], stdin)[0])


def stream(args: Sequence[str], stdin: str | None = None) -> tuple[IO[bytes], list[str]]:
    """Runs the command with its answer in memory, or in a file without a name, and returns that and the notes."""
    answer = _anonymous()
    try:
        done = _run([command(), *args], stdin, answer)
    except BaseException:
        answer.close()
        raise
    return answer, notes(done.stderr.decode(errors="replace"))


def _run(args: list[str], stdin: str | None, stdout: int | IO[bytes]) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        args,
        input=None if stdin is None else stdin.encode(),
        stdin=subprocess.DEVNULL if stdin is None else None,
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise failure(done.returncode, done.stderr.decode(errors="replace"))
    return done


def _anonymous() -> IO[bytes]:
    """A file that nobody else sees: memory, or a temporary file where Python or the kernel has no such memory.

    Pythons that were built for glibc 2.17, such as conda's, lack ``os.memfd_create`` on every Linux.
    """
    make = getattr(os, "memfd_create", None)
    if make is not None:
        with contextlib.suppress(OSError):
            return os.fdopen(make("commq"), "w+b")
    return tempfile.TemporaryFile()
