"""What the tests share. go test ./python runs them: it sets $COMMQ_COMMAND to a commq that it built."""

import os
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "agg")

import pytest

import commq

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def store() -> commq.Store:
    """The runs that are committed."""
    return commq.open(ROOT / "testdata" / "runs")
