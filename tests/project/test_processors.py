"""The same bytes on other processors, which this one imitates: `tools/verify.py --imitate` does the rest."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from smoke import ROOT
from verify import Stages, differences, obstacle, processors

# The first line shows that an imitation has an effect: what libraries give. What is stored has loops of its own.
COMPUTED = """
import hashlib
from pathlib import Path
import numpy as np
import torch
from seqlm.core.files import csv_text
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.report.drawing import all_figures
from seqlm.sine.settings import SineParams
from seqlm.sine.study import study_sine
def show(name, *values):
    print(name, hashlib.sha256(b"".join(np.asarray(value).tobytes() for value in values)).hexdigest())
values = np.linspace(-20, 3, 100_001)
show("exp of PyTorch and NumPy", torch.exp(torch.from_numpy(values)), np.exp(values))
params = load(Path("tests/params.yaml"), "sine", SineParams)
tables, summary = study_sine(params.model_copy(update={"taus": [4]}), 0)
show("sine", *(np.frombuffer(csv_text(table).encode(), np.uint8) for table in tables.values()))
for name, text in all_figures(Layout(Path())).items():
    show(name, text.encode())
"""


def test_differences_are_named_in_the_order_of_the_pipeline() -> None:
    def lock(**stages: dict[str, str]) -> Stages:
        return {name: {"outs": [{"path": p, "md5": h} for p, h in outs.items()]} for name, outs in stages.items()}

    expected = lock(report={"z": "1"}, **{"train@b": {"x": "1", "y": "2"}}, sine={"w": "1"})
    found = lock(report={"z": "2"}, **{"train@b": {"x": "3", "v": "2"}}, sine={"w": "1"})
    assert differences(expected, expected) == {}
    assert list(differences(expected, found).items()) == [("train@b", ["v", "x", "y"]), ("report", ["z"])]


@pytest.mark.slow
@pytest.mark.skipif(bool(obstacle()), reason=obstacle() or "")
def test_figures_and_the_sine_have_the_same_bits(tmp_path: Path) -> None:
    def printed(environment: Mapping[str, str]) -> list[str]:
        command = [sys.executable, "-c", COMPUTED]
        result = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
        return result.stdout.splitlines()

    (library, *own), *others = map(printed, processors(tmp_path).values())
    assert len(own) > 15
    for its_library, *its_own in others:
        assert its_library != library, "the imitation has no effect"
        assert its_own == own
