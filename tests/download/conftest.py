"""A server of texts, and the download stage that asks it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stages_by_hand import RunStage
from text_server import Download, TextServer


@pytest.fixture
def server() -> Iterator[TextServer]:
    server = TextServer()
    server.start()
    yield server
    server.close()


@pytest.fixture
def download(run_stage: RunStage, tmp_path: Path, server: TextServer) -> Download:
    return Download(run_stage, tmp_path, server)
