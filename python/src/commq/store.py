"""Stores, runs, and what is asked of them."""

from __future__ import annotations

import builtins
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import _command, _html
from ._queries import Queries
from .diagnosis import Diagnosis
from .errors import RunNotFound, RunUnreadable, UsageError
from .result import Result


class Runs(Queries):
    """One or more runs. A query asked of several gives one answer with a leading column run."""

    def __init__(self, store: str, names: Sequence[str]) -> None:
        #: Folder or URL of the store.
        self.store = store
        #: Names of the runs.
        self.names = list(names)

    def query(self, name: str, /, **options: Any) -> Result:
        """The answer of a query, commq's or one of your own, by its name.

        ``options`` are those of ``commq query NAME --help``, with underscores: ``run.query("density",
        collectives="none")``. There is a method for each of commq's queries: ``run.density(collectives="none")``.
        """
        query = name.replace("_", "-")
        stream, notes = _command.stream(self._asking("query", query, **options))
        return Result(stream, notes, self, query, options)

    def sql(self, text: str, **options: Any) -> Result:
        """The rows of one SELECT over the tables of the runs, in DuckDB's dialect.

        The tables are events, messages, comms, ranks, callsites and others, each with a leading column run:
        ``run.sql("SELECT call, count(*) AS n FROM events GROUP BY call")``.
        """
        stream, notes = _command.stream([*self._asking("sql", **options), "-"], stdin=text)
        return Result(stream, notes)

    def _asking(self, *words: str, **options: Any) -> list[str]:
        return [*words, *self._named(), "--format", "arrow", *_command.arguments(options)]

    def _named(self) -> list[str]:
        named = [part for name in self.names for part in ("--run", name)]
        return ["--store", self.store, *named]

    def draw(self, query: str, format: str = "png", **options: Any) -> bytes:
        """The bytes of the picture that ``commq query --plot`` draws."""
        with tempfile.TemporaryDirectory(prefix="commq-") as folder:
            path = os.path.join(folder, "picture." + format)
            _command.run(["query", query, *self._named(), "--plot", path, *_command.arguments(options)])
            with builtins.open(path, "rb") as f:
                return f.read()

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Run]:
        return (Run(self.store, name) for name in self.names)

    def __repr__(self) -> str:
        return f"<commq.Runs {', '.join(self.names)}>"


class Run(Runs):
    """One run: what an MPI job did."""

    def __init__(self, store: str, name: str) -> None:
        super().__init__(store, [name])
        self._manifest: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """Its name in the store."""
        return self.names[0]

    @property
    def path(self) -> str:
        """Its folder or URL."""
        return self.store.rstrip("/") + "/" + self.name

    @property
    def manifest(self) -> dict[str, Any]:
        """What ``commq runs show --format json`` prints: ranks, counts, how it was captured."""
        if self._manifest is None:
            manifest: dict[str, Any] = _command.ask(["runs", "show", "--store", self.store, "--run", self.name])
            self._manifest = manifest
        return self._manifest

    @property
    def ranks(self) -> int:
        """Number of its ranks."""
        return int(self.manifest["ranks"])

    def diagnose(self, **options: Any) -> Diagnosis:
        """Why the run is slow: findings, the one whose removal gains most first."""
        found = _command.ask(["diagnose", *self._named(), *_command.arguments(options)])
        return Diagnosis(found)

    def report(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Writes a page with diagnosis, pictures and tables: one HTML file."""
        options.setdefault("replace", True)
        _command.run(["report", *self._named(), "--output", os.fspath(path), *_command.arguments(options)])

    def __repr__(self) -> str:
        return f"<commq.Run {self.name}>"

    def _repr_html_(self) -> str:
        m = self.manifest
        counts = m["counts"]
        facts: list[tuple[str, object]] = [
            ("run", self.name),
            ("ranks", m["ranks"]),
            ("time", _html.time(m["end_ns"]) + ("" if m["time_origin"] == "measured" else f" ({m['time_origin']})")),
            ("calls", counts["calls"]),
            ("messages", counts["messages"]),
            ("message bytes", _html.size(counts["message_bytes"])),
            ("collectives", counts["collectives"]),
            ("ended", m["ended"]),
        ]
        return _html.table([name for name, _ in facts], [[value for _, value in facts]])


class Store(Mapping[str, Run]):
    """A folder of runs: a mapping from names to runs."""

    def __init__(self, path: str) -> None:
        #: Folder or URL.
        self.path = path

    def listed(self) -> list[dict[str, Any]]:
        """What ``commq runs list --format json`` prints: each run with its counts and its digest."""
        listed: list[dict[str, Any]] = _command.ask(["runs", "list", "--store", self.path])
        return listed

    def __getitem__(self, name: str) -> Run:
        run = Run(self.path, name)
        if not name or set(name) & set("/*?["):
            raise RunNotFound(f'"{name}" is not the name of a run; select() takes patterns', 2)
        holds = self._holds(name)
        try:
            run.manifest
        except UsageError as error:
            if holds and "/manifest.json: " in error.message:
                raise RunUnreadable(error.message, error.status) from None
            if not holds or name not in self:
                raise RunNotFound(error.message, error.status) from None
            raise
        if not holds:  # the command takes the path of a run, too
            raise RunNotFound(f'no run "{name}" in the store {self.path}', 2)
        return run

    def _holds(self, name: str) -> bool:
        """Whether the store has a folder of a run with that name; of a URL only the command can tell."""
        return "://" in self.path or os.path.isfile(os.path.join(self.path, name, "manifest.json"))

    def run(self, name: str) -> Run:
        """The run of that name, as ``store[name]``."""
        return self[name]

    def select(self, *patterns: str) -> Runs:
        """The runs that any of the patterns matches, to be asked together: ``store.select("mg.W.*").scaling()``.

        Patterns have ``*``, ``?`` and ``[...]``.
        """
        named = Runs(self.path, list(patterns))
        return Runs(self.path, [row["run"] for row in named.sql("SELECT run FROM runs")])

    def df(self) -> Any:
        """The runs as a DataFrame of pandas, with counts."""
        from .result import package

        return package("pandas", "pandas").DataFrame(self.listed())

    def __contains__(self, name: object) -> bool:
        return any(one["run"] == name for one in self.listed())

    def __iter__(self) -> Iterator[str]:
        return (listed["run"] for listed in self.listed())

    def __len__(self) -> int:
        return len(self.listed())

    def __repr__(self) -> str:
        return f"<commq.Store {self.path}>"

    def _repr_html_(self) -> str:
        shown = ["run", "ranks", "calls", "messages", "message_bytes", "collectives", "started"]
        rows = [[listed.get(name) for name in shown] for listed in self.listed()]
        return _html.table([name.replace("_", " ") for name in shown], rows)


def open(path: str | os.PathLike[str] | None = None) -> Store:
    """The store at a folder or URL; without one ``$COMMQ_STORE``, else ``./runs``, as of the command."""
    return Store(os.fspath(path) if path is not None else os.environ.get("COMMQ_STORE") or "runs")


__all__ = ["Run", "Runs", "Store", "open"]
