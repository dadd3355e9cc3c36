"""Answers, and the tables that they become."""

import csv
import errno
import io
import math
import os
import subprocess
import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import commq
from commq import _command
from commq._queries import PICTURES, Queries

QUERIES = [listed["name"] for listed in _command.ask(["query", "--list"])]


@pytest.fixture(scope="module")
def run(store: commq.Store) -> commq.Run:
    return store["cg.A.4"]


def test_density_as_documented(run: commq.Run) -> None:
    """The rows of docs/method/duckdb-shell.md."""
    frame = run.density(collectives="none").df()
    assert list(frame.columns) == ["src", "dst", "messages", "bytes"]
    assert frame.dtypes.astype(str).to_list() == ["int32", "int32", "int64", "int64"]
    assert frame.to_numpy().tolist() == [
        [0, 0, 416, 23296000],
        [0, 1, 1264, 23302912],
        [1, 0, 1264, 23302912],
        [1, 2, 416, 23296000],
        [2, 1, 416, 23296000],
        [2, 3, 1264, 23302912],
        [3, 2, 1264, 23302912],
        [3, 3, 416, 23296000],
    ]


@pytest.mark.parametrize("built_for", ["glibc 2.17", "Linux"])
def test_without_files_in_memory(run: commq.Run, monkeypatch: pytest.MonkeyPatch, built_for: str) -> None:
    """Pythons that were built for glibc 2.17 lack os.memfd_create; a kernel may refuse it."""

    def refused(name: str) -> int:
        raise OSError(errno.ENOSYS, name)

    if built_for == "Linux":
        monkeypatch.setattr(os, "memfd_create", refused)
    else:
        monkeypatch.delattr(os, "memfd_create")
    assert len(run.density(collectives="none").df()) == 8


def as_csv(value: object) -> str:
    """A value as --format csv writes it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("name", QUERIES)
def test_each_query_gives_the_rows_of_the_command(run: commq.Run, name: str) -> None:
    asked = [commq.command(), "query", name, "--run", run.path, "--format", "csv"]
    said = subprocess.run(asked, capture_output=True, text=True)
    method = getattr(run, name.replace("-", "_"))
    if said.returncode:
        with pytest.raises(commq.UsageError) as caught:
            method()
        assert f"commq: {caught.value}\n" == said.stderr
        return
    heads, *want = csv.reader(io.StringIO(said.stdout))
    answer = method()
    assert answer.columns == heads
    got = list(answer)
    assert len(got) == len(want)
    for row, expected in zip(got, want):
        for (column, value), text in zip(row.items(), expected):
            if isinstance(value, float):  # sums of two threads may differ in the last digit
                assert math.isclose(float(text), value, rel_tol=1e-9), column
            else:
                assert as_csv(value) == text, column
    assert answer.descriptions.keys() == set(heads)


def test_methods_and_pictures_are_those_of_the_queries() -> None:
    methods = {name for name in vars(Queries) if not name.startswith("_")} - {"query"}
    assert methods == {name.replace("-", "_") for name in QUERIES}
    drawn = {listed["name"]: listed["plot"] for listed in _command.ask(["query", "--list"]) if listed["plot"]}
    assert {name: picture.kind for name, picture in PICTURES.items()} == drawn
    for kind in (commq.Run, commq.Runs):
        hidden = methods & {name for base in kind.__mro__ if base is not Queries for name in vars(base)}
        assert not hidden, f"{kind} hides queries"


def test_arrow_reads_the_answer_in_place(run: commq.Run) -> None:
    answer = run.sql("SELECT bytes FROM messages")
    whole = pa.py_buffer(answer._bytes)
    for chunk in answer.arrow().column("bytes").chunks:
        values = chunk.buffers()[1]
        assert whole.address <= values.address < whole.address + whole.size
    assert len(answer) == 6720


def test_whole_numbers_stay_whole(run: commq.Run) -> None:
    answer = run.sql("""
        SELECT * FROM (VALUES (1, 9007199254740993, 7), (2, NULL, 8), (3, 5, NULL)) t(a, b, c)""")
    frame = answer.df()
    assert frame.dtypes.astype(str).to_list() == ["int32", "Int64", "Int32"]
    assert frame["b"].to_list() == [9007199254740993, pd.NA, 5]
    assert answer.pl()["b"].to_list() == [9007199254740993, None, 5]


def test_sums_are_integers(run: commq.Run) -> None:
    answer = run.sql("SELECT sum(bytes) AS bytes, sum(bytes) * 100000000000000 AS more FROM messages")
    assert str(answer.arrow().schema.field("bytes").type) == "decimal128(38, 0)"
    frame = answer.df()
    assert frame["bytes"].dtype == "int64"
    assert frame["bytes"].iloc[0] == 186395648
    assert int(frame["more"].iloc[0]) == 18639564800000000000000  # beyond 64 bits
    assert answer.pl()["bytes"].to_list() == [186395648]


def test_no_rows(run: commq.Run) -> None:
    answer = run.density(where="bytes < 0", collectives="none")
    assert len(answer) == 0
    assert list(answer.df().columns) == ["src", "dst", "messages", "bytes"]
    assert answer.pl().shape == (0, 4)
    assert list(answer) == []


def test_polars_without_pyarrow(run: commq.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = run.density()
    with_it = answer.pl()
    bare = run.density()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert bare.pl().equals(with_it)
    assert bare._repr_html_() is None
    with pytest.raises(ImportError, match=r"pip install 'commq\[arrow\]'"):
        bare.df()


def test_the_pycapsule_interface(run: commq.Run) -> None:
    assert pl.DataFrame(run.density()).equals(run.density().pl())


def test_several_runs(store: commq.Store) -> None:
    both = store.select("cg.A.*")
    assert sorted(both.names) == ["cg.A.16", "cg.A.4"]
    frame = both.ratio().df()
    assert set(frame["run"]) == {"cg.A.16", "cg.A.4"}
    laws = store.select("mg.W.*").scaling(measure="messages").df()
    assert laws["ranks"].to_list() == [2, 4, 8, 16, 32]


def test_limit_and_underscores(run: commq.Run) -> None:
    assert len(run.query("calls_time", limit=2)) == 2


def test_units(run: commq.Run) -> None:
    assert run.density().units == {"messages": "1", "bytes": "bytes"}
    assert run.density().descriptions["src"] == "World rank that sends."


def test_wrong_questions(run: commq.Run, store: commq.Store) -> None:
    with pytest.raises(commq.UsageError) as caught:
        run.query("density", collectives="all")
    assert str(caught.value) == 'query density: --collectives "all": want one of rooted, logical, tree, none'
    assert caught.value.status == 2
    with pytest.raises(commq.UsageError, match='unknown query "densty"; did you mean density'):
        run.query("densty")
    with pytest.raises(commq.UsageError, match="unknown flag --colectives; did you mean --collectives"):
        run.query("density", colectives="none")
    with pytest.raises(commq.UsageError, match="Table with name nothing does not exist"):
        run.sql("SELECT * FROM nothing")
    with pytest.raises(commq.UsageError, match="does not keep every call; capture it again with --record all"):
        store["bt.C.64"].late_receivers()


def test_an_answer_in_a_notebook(run: commq.Run) -> None:
    html = run.sql("SELECT rank, call, '<b>' AS text FROM events ORDER BY rank, seq")._repr_html_()
    assert html is not None
    assert html.count("<tr>") == 21
    assert "&lt;b&gt;" in html and "<b>" not in html
    assert "The first 20 of 20,180 rows." in html
    density = run.density()._repr_html_()
    assert density is not None and '<th title="Payload of those messages. In bytes.">bytes</th>' in density
    assert repr(run.density()).startswith("<commq.Result density: ")


def test_notes(store: commq.Store) -> None:
    answer = store["bt.C.64"].late_senders()
    assert len(answer.notes) == 1 and "--time-resolution-ns" in answer.notes[0]
    assert "--time-resolution-ns" in (answer._repr_html_() or "")
