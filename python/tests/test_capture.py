"""Recording programs of mpi4py under both MPI libraries."""

import ctypes.util
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import commq

PROGRAM = [sys.executable, str(Path(__file__).parent / "exchange.py")]
LIBRARIES = ["openmpi", "mpich"]


@pytest.fixture
def mpi(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Options of a capture under one library."""
    library = request.param
    launcher = shutil.which(f"mpirun.{library}")
    if launcher is None:
        pytest.skip(f"no mpirun.{library}")
    env = dict(os.environ, MPI4PY_MPIABI=library)
    if library == "openmpi":
        launcher += " --oversubscribe"
        env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
    else:  # Debian names the library of the MPICH ABI otherwise
        os.symlink(find("libmpich.so.12"), tmp_path / "libmpi.so.12")
        env["LD_LIBRARY_PATH"] = str(tmp_path)
    return {"mpi": library, "launcher": launcher, "env": env, "store": commq.open(tmp_path / "runs")}


def find(name: str) -> str:
    """The path of a shared library."""
    ctypes.CDLL(name)
    with open("/proc/self/maps") as maps:
        return next(line.split()[-1] for line in maps if name in line)


@pytest.mark.parametrize("mpi", LIBRARIES, indirect=True)
def test_a_program_of_mpi4py(mpi: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    run = commq.capture(PROGRAM, ranks=3, **mpi)
    assert run.name.endswith(".3") and list(mpi["store"]) == [run.name]
    assert capfd.readouterr().out == "exchanged\n"
    assert run.density(collectives="none").df().to_numpy().tolist() == [
        [0, 1, 3, 3000],
        [1, 2, 3, 3000],
        [2, 0, 3, 3000],
    ]
    assert run.manifest["origin"]["mpi"].lower().replace(" ", "").startswith(mpi["mpi"])


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_what_goes_wrong(mpi: dict[str, Any]) -> None:
    with pytest.raises(commq.ProgramFailed) as failed:
        commq.capture([*PROGRAM, "fail"], name="fails.3", ranks=3, **mpi)
    assert failed.value.status == 3
    assert isinstance(failed.value.run, commq.Run) and failed.value.run.manifest["counts"]["messages"] == 9
    with pytest.raises(commq.UsageError, match="fails.3"):
        commq.capture(PROGRAM, name="fails.3", ranks=3, **mpi)
    with pytest.raises(commq.UsageError, match="no rank recorded anything"):
        commq.capture(["./no-such-program"], name="none.3", ranks=3, **mpi)
    with pytest.raises(commq.UsageError, match="unknown flag --rank-count"):
        commq.capture(PROGRAM, name="none.3", rank_count=3, **mpi)


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_records_are_kept_if_no_run_is_written(mpi: dict[str, Any], tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    with pytest.raises(commq.UsageError, match="the records are kept") as failed:
        commq.capture(PROGRAM, name="lost.3", ranks=3, spool=spool, gather="false", **mpi)
    kept = next(word for word in str(failed.value).split() if word.startswith(str(spool)))
    assert len(list(Path(kept).glob("*.cqs"))) == 3


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_records_are_kept_on_demand(mpi: dict[str, Any], tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    commq.capture(PROGRAM, name="removed.3", ranks=3, spool=spool, **mpi)
    assert not list(spool.iterdir())
    commq.capture(PROGRAM, name="kept.3", ranks=3, spool=spool, keep_spool=True, **mpi)
    assert len(list(spool.glob("*/*/*.cqs"))) == 3


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_a_job_is_watched(mpi: dict[str, Any], tmp_path: Path) -> None:
    go, spool = tmp_path / "go", tmp_path / "spool"
    spool.mkdir()
    with commq.capturing([*PROGRAM, "wait", str(go)], name="ring.2", ranks=2, spool=spool, **mpi) as job:
        with pytest.raises(commq.CommqError, match="leave the with block"):
            job.run
        assert job.running
        seen = asked(job.watch, lambda seen: seen["seen"] == 2)
        assert (seen["state"], seen["ranks"]) == ("running", 2)
        hang = asked(job.hang, lambda hang: len(hang["findings"]) == 1)
        assert (hang["state"], hang["findings"][0]["ranks"], hang["findings"][0]["for"]) == ("running", [1], 0)
        assert list(spool.glob("*/*/*.cqs"))
        go.touch()
    assert not job.running
    with pytest.raises(commq.UsageError, match="no folder"):
        job.watch()
    assert job.run.ranks == 2


def asked(ask: Callable[[], Any], fits: Callable[[Any], bool]) -> Any:
    """The first answer that fits; there is none before the ranks have started."""
    for _ in range(600):
        try:
            answer = ask()
            if fits(answer):
                return answer
        except commq.UsageError as error:
            assert "no records in it" in str(error)
        time.sleep(0.1)
    raise AssertionError("no answer fits within a minute")


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_a_job_ends_with_a_body_that_fails(mpi: dict[str, Any]) -> None:
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
    with pytest.raises(ZeroDivisionError):
        with commq.capturing(sleeps, name="ends.2", ranks=2, **mpi) as job:
            print(1 / 0)
    assert not job.running
