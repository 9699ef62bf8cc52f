"""The pipeline, run once by the real DVC, for the modules that experiment with it."""

import os
from collections.abc import Iterator

import pytest

from smoke import SMALL
from workspace import Workspace, copy_of_finished


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A committed workspace of the module's own in which the pipeline ran once, for all workers together."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # each worker's folder lies in the session's
    workspace = copy_of_finished(shared, tmp_path_factory.mktemp("pipeline"), SMALL)
    workspace.keep_traces()
    workspace.commit("A run with small settings")
    return workspace


@pytest.fixture
def clean(workspace: Workspace) -> Iterator[Workspace]:
    """The workspace; whatever a test changed is undone."""
    yield workspace
    workspace.restore()
