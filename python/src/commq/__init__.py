"""How MPI programs communicate: captured runs, asked from Python.

    import commq

    store = commq.open("runs")
    run = store["bt.C.64"]
    run.density(collectives="none").df()  # a DataFrame of pandas; .pl() polars, .arrow() Arrow
    run.density().plot()
    run.sql("SELECT call, count(*) AS n FROM events GROUP BY call").df()
    run.diagnose()
    commq.capture(["./ring"], name="ring.4", ranks=4)

The command ``commq`` answers; this package asks it and reads its answer.
"""

from ._command import command
from ._picture import style
from .capturing import Job, capture, capturing
from .diagnosis import Diagnosis, Finding
from .errors import CheckFailed, CommandNotFound, CommqError, ProgramFailed, RunNotFound, RunUnreadable, UsageError
from .result import Picture, Result
from .store import Run, Runs, Store, open

__all__ = [
    "CheckFailed",
    "CommandNotFound",
    "CommqError",
    "Diagnosis",
    "Finding",
    "Job",
    "Picture",
    "ProgramFailed",
    "Result",
    "Run",
    "RunNotFound",
    "RunUnreadable",
    "Runs",
    "Store",
    "UsageError",
    "capture",
    "capturing",
    "command",
    "open",
    "style",
]
