"""Recording a program."""

from __future__ import annotations

import errno
import glob
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, TextIO

from . import _command
from .errors import CommqError, ProgramFailed, UsageError
from .store import Run, Store
from .store import open as open_store


class Job:
    """A program that is being recorded."""

    def __init__(self, process: subprocess.Popen[str], spool: str) -> None:
        self._process = process
        self._spool = spool
        self._run: Run | None = None

    @property
    def running(self) -> bool:
        """Whether the program has not ended yet, or its run is being written."""
        return self._process.poll() is None

    def watch(self) -> Any:
        """How far the job is: what ``commq watch --once --format json`` prints.

        UsageError until the first rank has called MPI_Init, and when the job has ended.
        """
        return _command.ask(["watch", self._records(), "--once"])

    def hang(self) -> Any:
        """Who waits for whom now: what ``commq watch --hang --format json`` prints; errors as of :meth:`watch`."""
        return _command.ask(["watch", self._records(), "--hang"])

    def _records(self) -> str:
        """The folder of the job's records, which capture makes in the spool; before that the spool."""
        made = glob.glob(os.path.join(glob.escape(self._spool), "commq-spool-*"))
        return made[0] if made else self._spool

    def stop(self) -> None:
        """Ends the program; what it did until then is a run."""
        self._process.terminate()

    @property
    def run(self) -> Run:
        """What was recorded, when the job has ended."""
        if self._run is None:
            raise CommqError("the run is written when the job has ended: leave the with block first")
        return self._run


@contextmanager
def capturing(
    program: Sequence[str],
    *,
    name: str | None = None,
    ranks: int | None = None,
    store: str | os.PathLike[str] | Store | None = None,
    replace: bool = False,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> Iterator[Job]:
    """Records a program while the body of the with statement runs, and waits for its end.

    ``program`` is the program and its arguments, ``name`` that of the run (without one it is the program's, with the
    number of ranks), ``ranks`` how many. ``replace`` overwrites a run of that name. ``env`` is the environment, if not
    this process's. Other options are those of ``commq capture``, with underscores:
    ``launcher="mpirun --oversubscribe"``, ``record="messages"``, ``mpi="openmpi"``. What the program prints is printed.
    The records are removed when the run is written, unless ``keep_spool=True`` keeps them; if it cannot be written they
    are kept, and the error says where.

    Errors: UsageError if it could not be recorded, ProgramFailed if it ended with an error; its run is then in that
    exception.
    """
    stored = store if isinstance(store, Store) else open_store(store)
    before = _contents(stored)
    spool = tempfile.mkdtemp(prefix="commq-", dir=options.pop("spool", None))
    try:
        flags = _command.arguments({**options, "name": name, "ranks": ranks, "replace": replace, "spool": spool})
        process = subprocess.Popen(
            [_command.command(), "capture", "--quiet", "--store", stored.path, *flags, "--", *program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=None if env is None else dict(env),
        )
        said: list[str] = []
        pipes = [_forward(process.stdout, sys.stdout, []), _forward(process.stderr, sys.stderr, said)]
        job = Job(process, spool)
        try:
            yield job
            status = process.wait()
        except BaseException:  # the kernel was interrupted, or the body failed
            process.terminate()
            process.wait()
            raise
        finally:
            for pipe in pipes:
                pipe.join()
        job._run = _written(stored, name, before, status, "".join(said))
    finally:
        _remove_empty(spool)


def _remove_empty(folder: str) -> None:
    """Removes a folder that the command has emptied; records that it kept stay."""
    try:
        os.rmdir(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            raise


def _contents(store: Store) -> dict[str, str]:
    """The runs of a store, with their digests and when they started."""
    return {run["run"]: f"{run['digest']} {run['started']}" for run in store.listed()}


def _written(store: Store, name: str | None, before: dict[str, str], status: int, said: str) -> Run:
    """The run that was written, or an exception. before is what the store had."""
    if status == 0 and name is not None:
        return store[name]
    new = {run for run, what in _contents(store).items() if before.get(run) != what and name in (None, run)}
    if len(new) > 1:
        raise CommqError(f"the store {store.path} has new runs {', '.join(sorted(new))}; name the one to write")
    run = store[new.pop()] if new else None
    if run is not None and status == 0:
        return run
    if run is None and (status in (0, 2) or "\ncommq: capture: " in "\n" + said):
        raise UsageError("\n".join(_command.notes(said)) or said.strip(), status)
    how = f"by signal {status - 128}" if status > 128 else f"with exit status {status}"
    raise ProgramFailed(f"the program ended {how}: {said.strip() or 'it said nothing'}", status, run)


def capture(
    program: Sequence[str],
    *,
    name: str | None = None,
    ranks: int | None = None,
    store: str | os.PathLike[str] | Store | None = None,
    replace: bool = False,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> Run:
    """Records a program to its end and returns its run; see :func:`capturing` for the options and errors."""
    with capturing(program, name=name, ranks=ranks, store=store, replace=replace, env=env, **options) as job:
        pass
    return job.run


def _forward(pipe: IO[str] | None, to: TextIO, kept: list[str]) -> threading.Thread:
    """Passes what comes out of a pipe on, line by line, and keeps it."""

    def work() -> None:
        assert pipe is not None
        with pipe:
            for line in pipe:
                kept.append(line)
                to.write(line)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


__all__ = ["Job", "capture", "capturing"]
