"""Stores and runs."""

import shutil
from pathlib import Path

import pytest

import commq


def test_a_store_is_a_mapping(store: commq.Store) -> None:
    assert len(store) == len(list(store)) > 20
    assert "cg.A.4" in store
    assert "cg.A.5" not in store
    assert store["cg.A.4"].name == store.run("cg.A.4").name == "cg.A.4"
    assert store.get("cg.A.5") is None
    assert set(store.df()["run"]) == set(store)


def test_a_run_that_is_not_there(store: commq.Store) -> None:
    with pytest.raises(KeyError) as caught:
        store["cg.A.5"]
    assert isinstance(caught.value, commq.UsageError)
    assert str(caught.value).startswith('no run "cg.A.5" in the store ')
    for name in ("cg.*", "", "a/b"):
        with pytest.raises(commq.RunNotFound, match="not the name of a run"):
            store[name]
    with pytest.raises(commq.UsageError, match='no run fits "zz'):
        store.select("zz*")


def test_a_run_of_another_store(store: commq.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store.path)
    for name in ("cg.A.4", "ep.W.4", "."):
        with pytest.raises(commq.RunNotFound):
            commq.open(tmp_path)[name]
        assert commq.open(tmp_path).get(name) is None


def test_a_run_that_cannot_be_read(store: commq.Store, tmp_path: Path) -> None:
    shutil.copytree(store["rma.3"].path, tmp_path / "old")
    manifest = tmp_path / "old" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema_version": 2', '"schema_version": 1'))
    with pytest.raises(commq.RunUnreadable, match="schema version 1, this commq reads 2") as caught:
        commq.open(tmp_path)["old"]
    assert not isinstance(caught.value, KeyError)


def test_a_manifest(store: commq.Store) -> None:
    run = store["cg.A.4"]
    assert run.ranks == 4
    assert run.manifest["counts"]["messages"] == 6720
    assert "<td" in run._repr_html_() and "6720" in run._repr_html_()
    assert "cg.A.4" in store._repr_html_()


def test_an_empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(commq.open(tmp_path)) == 0
    monkeypatch.setenv("COMMQ_STORE", str(tmp_path))
    assert commq.open().path == str(tmp_path)
    monkeypatch.delenv("COMMQ_STORE")
    assert commq.open().path == "runs"


def test_a_damaged_run_is_not_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "bad.4").mkdir()
    (tmp_path / "bad.4" / "manifest.json").write_text("{")
    with pytest.raises(commq.UsageError) as caught:
        commq.open(tmp_path)["bad.4"]
    assert "manifest" in str(caught.value)


def test_a_report(store: commq.Store, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    store["uneven.4"].report(page)
    assert b"<html" in page.read_bytes()[:200].lower()


def test_a_diagnosis(store: commq.Store) -> None:
    found = store["uneven.4"].diagnose()
    first = found[0]
    assert first.rule == "imbalance"
    assert first.ranks == [2]
    assert first.callsite == "/src/uneven.c:32"
    assert first.gain_ns == 735364689
    assert round(first.gain_share, 3) == 0.474
    assert not first.bound
    assert first.title.startswith("Rank 2 computes 1.96 times as long as the mean")
    parallel = found.efficiency["parallel"]
    assert parallel is not None and round(parallel, 3) == 0.509
    assert found["machine"] and found.warnings == []
    assert len(found) == len(list(found)) == len(found[:])
    assert "Give these ranks less work" in found._repr_html_()
    assert "gain 735 ms (47.4%)" in first._repr_html_()
    with pytest.raises(commq.UsageError, match="machine"):
        store["uneven.4"].diagnose(machine="no such machine")
