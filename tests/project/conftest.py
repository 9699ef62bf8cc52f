"""The pipeline, run once by the real DVC, for the modules that experiment with it."""

from collections.abc import Iterator

import pytest

from smoke import SMALL
from workspace import Workspace, finished


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A committed workspace in which the pipeline ran once."""
    workspace = finished(tmp_path_factory.mktemp("pipeline"), SMALL)
    workspace.keep_traces()
    workspace.commit("A run with small settings")
    return workspace


@pytest.fixture
def clean(workspace: Workspace) -> Iterator[Workspace]:
    """The workspace; whatever a test changed is undone."""
    yield workspace
    workspace.restore()
