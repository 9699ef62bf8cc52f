"""The pipeline, run once by the real DVC, for the modules that experiment with it."""

import os
from collections.abc import Iterator

import pytest

from smoke import SMALL
from workspace import Workspace, copy_of_finished


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The module's own copy of a committed workspace in which the pipeline ran once, shared by all workers."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # which holds each worker's folder
    workspace = copy_of_finished(shared, tmp_path_factory.mktemp("pipeline"), SMALL)
    workspace.keep_traces()
    workspace.commit("A run with small settings")
    return workspace


@pytest.fixture
def clean(workspace: Workspace) -> Iterator[Workspace]:
    """The workspace; the test's changes are undone afterwards."""
    yield workspace
    workspace.restore()
