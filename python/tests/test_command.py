"""The command, and what goes wrong with it."""

import subprocess
import sys
from pathlib import Path

import pytest

import commq
from commq import _command


def test_python_m_commq_is_the_command() -> None:
    said = subprocess.run([sys.executable, "-m", "commq", "--version"], capture_output=True, text=True, check=True)
    direct = subprocess.run([commq.command(), "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == direct.stdout
    assert said.stdout.startswith("commq version ")


def test_python_m_commq_has_the_commands_status_and_words() -> None:
    said = subprocess.run([sys.executable, "-m", "commq", "query", "densty"], capture_output=True, text=True)
    assert said.returncode == 2
    assert said.stderr.startswith('commq: unknown query "densty"'), said.stderr


def test_no_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("COMMQ_COMMAND")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(commq.CommandNotFound, match="pip install commq"):
        commq.command()
    monkeypatch.setenv("COMMQ_COMMAND", str(tmp_path / "commq"))
    with pytest.raises(commq.CommandNotFound, match="cannot be executed"):
        commq.command()


def test_a_script_named_commq_is_not_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "commq"
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o755)
    monkeypatch.delenv("COMMQ_COMMAND")
    monkeypatch.setattr(_command, "_script_folders", lambda: [str(tmp_path)])
    monkeypatch.setenv("PATH", "")
    with pytest.raises(commq.CommandNotFound):
        commq.command()


def test_options_are_flags() -> None:
    given = {"min_bytes": 5, "where": "tag = 9", "exact": True, "verify": False, "limit": None}
    given |= {"calls": ["a", "b"], "from_": 1}
    assert _command.arguments(given) == [
        "--min-bytes", "5", "--where", "tag = 9", "--exact", "--calls", "a", "--calls", "b", "--from", "1",
    ]  # fmt: skip


def test_notes_and_errors_are_told_apart() -> None:
    said = "a line of the program\ncommq: first note\ncommq: second\n  and more\n"
    assert _command.notes(said) == ["first note", "second\n  and more"]
    assert _command.words(said) == "second\n  and more"
    assert _command.words("") == "it said nothing"


@pytest.mark.parametrize(
    ("status", "kind"), [(1, commq.CheckFailed), (2, commq.UsageError), (141, commq.CommqError), (-9, commq.CommqError)]
)
def test_each_exit_status_is_an_exception(status: int, kind: type[commq.CommqError]) -> None:
    error = _command.failure(status, "commq: so it is\n")
    assert type(error) is kind
    assert error.status == status
    assert str(error) == ("commq was ended by signal 9" if status < 0 else "so it is")
