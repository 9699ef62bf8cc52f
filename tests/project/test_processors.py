"""The same bytes on other processors, which this one imitates (``tools/imitate.py``)."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from imitate import AVX2_ONLY, OTHER_MAKER, THIS, environments, obstacle
from smoke import ROOT
from verify import differences, run_from_scratch

pytestmark = pytest.mark.skipif(bool(obstacle()), reason=obstacle() or "")

# First what libraries give, then what has a loop or a formula of its own, and a figure with logarithmic axes; the slow
# tests below draw every figure and run every stage.
COMPUTED = """
import hashlib
from pathlib import Path
import numpy as np
import torch
from seqlm.core.elementary import exp, log
from seqlm.core.files import csv_text, read_csv
from seqlm.core.settings import load
from seqlm.evaluate.mixtures import choose_weights, mix
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.laplace import Laplace, tune_epsilons
from seqlm.ngrams.statistics import fit_zipf, vocabulary_growth
from seqlm.report.figures.plots import Plot, draw
from seqlm.report.figures.style import svg_text
from seqlm.sine.settings import SineParams
from seqlm.sine.study import study_sine
def show(name, *values):
    print(name, hashlib.sha256(b"".join(np.asarray(value).tobytes() for value in values)).hexdigest())
values = np.linspace(-20, 3, 100_001)
show("exp of PyTorch and NumPy", torch.exp(torch.from_numpy(values)), np.exp(values))
rng = np.random.default_rng(0)
ids = rng.zipf(1.3, 20_000).clip(max=300)
counts, val = count_ngrams(ids[:15_000], 301, 3), ids[15_000:]
show("elementary", exp(np.linspace(-30, 30, 9999)), log(np.linspace(1e-9, 30, 9999)))
# The exponent of equal counts is 0 but for rounding errors.
for counted in (np.sort(np.bincount(ids))[::-1], np.full(5000, 3)):
    show("zipf", *vars(fit_zipf(counted, 2)).values())
show("growth", f"{vocabulary_growth(np.unique(ids, return_index=True)[1], len(ids))[2]:.9g}")
epsilons, curve = tune_epsilons(counts, val, 2, "unigram")
show("laplace", *(row["val_perplexity"] for row in curve))
nats = [token_nll(model, val) for model in (Laplace(counts, 2, epsilons, "unigram"), KneserNey(counts, 3))]
weights = choose_weights(nats)
show("mixture", *nats, weights, mix(nats, weights))
params = load(Path("tests/params.yaml"), "sine", SineParams)
tables, summary = study_sine(params.model_copy(update={"taus": [4]}), 0)
show("sine", *(np.frombuffer(csv_text(table).encode(), np.uint8) for table in tables.values()))
plot = Plot("epsilon", ["val_perplexity"], "epsilon", "perplexity", "loglog")
show("figure", svg_text(draw(read_csv(Path("reports/ngrams/char/epsilons.csv")), plot, "order")))
"""
# All figures from the committed tables; first, that the imitation changes what NumPy gives.
DRAWN = """
import hashlib
from pathlib import Path
import numpy as np
from seqlm.core.layout import Layout
from seqlm.report.drawing import all_figures
values = np.linspace(0.1, 1, 100_001)
print(hashlib.sha256(np.log(values).tobytes() + np.exp(values).tobytes()).hexdigest())
for name, text in all_figures(Layout(Path())).items():
    print(name, hashlib.sha256(text.encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def processors(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, str]]:
    """The variables of this processor and of the imitated ones."""
    return environments(tmp_path_factory.mktemp("maker"))


def printed(script: str, environment: Mapping[str, str]) -> list[str]:
    """Return the lines that a script prints under some variables."""
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
    return result.stdout.splitlines()


@pytest.fixture(params=[OTHER_MAKER, AVX2_ONLY])
def imitated(request: pytest.FixtureRequest, processors: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    if request.param not in processors:
        pytest.skip("this processor has AVX2 only")
    return processors[request.param]


def test_functions_give_the_same_bits(imitated: Mapping[str, str], processors: Mapping[str, Mapping[str, str]]) -> None:
    (library, *own), (its_library, *its_own) = (printed(COMPUTED, found) for found in (processors[THIS], imitated))
    assert library != its_library, "the imitation has no effect"
    assert own == its_own


@pytest.mark.slow
def test_figures_have_the_same_bytes(processors: Mapping[str, Mapping[str, str]]) -> None:
    drawn = {name: printed(DRAWN, variables) for name, variables in processors.items()}
    library, *own = drawn[THIS]
    assert len(own) > 12
    for name, (its_library, *its_own) in drawn.items():
        # NumPy does not ask who made the processor, so the other maker changes only what MKL computes.
        assert (its_library != library) == (name == AVX2_ONLY), "the imitation has no effect"
        assert its_own == own, name


@pytest.mark.slow
def test_a_small_pipeline_gives_the_same_bytes(
    imitated: Mapping[str, str], processors: Mapping[str, Mapping[str, str]], tmp_path: Path
) -> None:
    own = run_from_scratch(tmp_path / "own", processors[THIS], small=True)
    other = run_from_scratch(tmp_path / "other", imitated, small=True)
    assert differences(own, other) == {}
