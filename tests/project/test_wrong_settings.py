"""Wrong settings through the real ``dvc exp run -S``, and the way back; each wrong value is in tests/configure."""

import pytest

from workspace import Workspace

pytestmark = pytest.mark.slow

# One of each section, and each kind of wrong value; DVC itself refuses a mapping in place of a value.
WRONG = [
    "seed=-1", "num_threads=0", "train={a: b}", "launcher=none_such", "download.corpus=null", "download.max_bytes=true",
    "preprocess.split.train=nan", "vocab.char.min_freq=-1", "ngrams.laplace.epsilons=[[]]", "sine.noise=inf",
    "heldout.max_chars=0", "score.dynamic.lrs=none_such", "evaluate.mixtures=1e30", "compare.tolerance=-1",
    "generate.temperatures={a: b}", "gradients.num_draws=null", "runs.plain.token=true",
    "+no_such_section=1", "+train.no_such_setting=1", "+runs.plain.no_such_setting=1",
]  # fmt: skip


def contents(workspace: Workspace) -> dict[str, bytes]:
    """Return the content of every file that the pipeline made."""
    files = [path for name in ("data", "reports") for path in (workspace.folder / name).rglob("*") if path.is_file()]
    return {str(path.relative_to(workspace.folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("override", WRONG)
def test_a_wrong_setting_ends_with_one_line_and_two_commands_restore(override: str, workspace: Workspace) -> None:
    before, name = contents(workspace), override.lstrip("+").partition("=")[0]
    result = workspace.run("dvc", "exp", "run", "--set-param", override, check=False)
    assert result.returncode != 0
    if "Invalid `--set-param` value" not in result.stderr:
        (line,) = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        assert line.startswith("error: params.yaml: ")
        assert (f"{name}: unknown setting" if override[0] == "+" else name.rpartition(".")[2]) in line
        assert "`make restore` goes back to the last commit" in result.stderr
    assert "Traceback" not in result.stderr
    # The stage that failed removed its outputs and left no temporary file.
    assert not [path for path in contents(workspace) if path.endswith(".part")]
    workspace.show_changed_settings()
    workspace.git("checkout", "params.yaml", "dvc.lock", "reports")
    workspace.run("dvc", "checkout")
    assert workspace.git("status", "--porcelain") == ""
    assert contents(workspace) == before
