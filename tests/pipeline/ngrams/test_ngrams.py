"""The ngrams stage by hand: what it describes, chooses on val and stores, and the ARPA files that it writes."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import seqlm
from encoded_corpora import encode
from seqlm.core.layout import Layout
from seqlm.ngrams.arpa import read_arpa, write_arpa
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.models.laplace import Laplace
from seqlm.ngrams.models.registry import build_models, load_counts
from seqlm.pipeline.ngrams import engines
from seqlm.pipeline.ngrams.settings import NgramsParams
from seqlm.pipeline.ngrams.smoothing import choose_settings, tune_epsilons
from seqlm.vocab.corpus import SPLITS, load_split
from seqlm.vocab.kinds import BYTE_TOKENS
from seqlm.vocab.vocabulary import Vocab
from small_runs import PARAMS, ngram_models
from smoke import change_params
from stages_by_hand import RunStage, refused, run_command, succeeded

LINES = "the sea came in and the sea went out\nand the sea came in\n"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return encode(Layout(tmp_path), ["word"], "", LINES * 5)


def test_the_stage_describes_the_whole_text_and_counts_train(
    run_stage: RunStage, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both need more than the memory of the settings; instead of DuckDB, memory counts them.
    limits: list[int] = []
    monkeypatch.setattr(engines, "_BYTES_OF_KEY", 2**29)
    monkeypatch.setattr(engines, "DuckDB", lambda memory, _: limits.append(memory))
    change_params(layout.params, {"ngrams.memory": 2**29})
    succeeded(run_stage("ngrams", "--kind", "word"))
    assert limits == [2**29, 2**29]
    frequent = pd.read_csv(layout.reports("ngrams", "word", "frequencies.csv"))
    top = frequent[frequent["n"] == 2].iloc[0]
    # "the sea" occurs three times in each pair of lines; there are five pairs per split, and three splits.
    assert (top["ngram"], top["count"]) == ("the sea", 45)
    summary = json.loads(layout.reports("ngrams", "word", "summary.json").read_text())
    assert summary["tokens"] == 14 * 5 * 3
    models = build_models(*load_counts(layout.ngrams("word"), Vocab.load(layout.vocab("word")).key))
    assert list(models) == ngram_models()
    # The curves show the choice of each epsilon that is stored.
    curves = pd.read_csv(layout.reports("ngrams", "word", "epsilons.csv"))
    best = curves.loc[curves.groupby("order")["val_perplexity"].idxmin(), "epsilon"]
    stored = json.loads((layout.ngrams("word") / "models.json").read_text())["settings"]
    assert stored["laplace"] == {"epsilons": pytest.approx(best.tolist()), "chosen_on_val": True}


def test_the_epsilons_are_chosen_on_val_and_not_on_test(run_stage: RunStage, tmp_path: Path) -> None:
    """Words that follow as in train ask for a small epsilon; words in another order for a large one."""
    other, chosen = "out went and came sea the\nsea in sea out\n" * 5, []
    for val, test in ((LINES * 5, other), (other, LINES * 5)):
        layout = encode(Layout(tmp_path), ["word"], "", LINES * 5, val, test)
        succeeded(run_stage("ngrams", "--kind", "word"))
        stored = json.loads((layout.ngrams("word") / "models.json").read_text())["settings"]
        chosen.append(stored["laplace"]["epsilons"][1])
    assert chosen[0] < chosen[1]


def test_subwords_are_described_as_text_and_written_one_to_a_field(run_stage: RunStage, tmp_path: Path) -> None:
    lines = "the sea came in\nand the tide\n" * 30
    # Train has no ï: it is two bytes.
    layout = encode(Layout(tmp_path), ["subword"], "\n", lines, lines, lines + "naïve\n")
    succeeded(run_stage("ngrams", "--kind", "subword"))
    streams = [load_split(layout.corpus("subword"), split) for split in SPLITS]
    whole = np.concatenate(streams)
    summary = json.loads(layout.reports("ngrams", "subword", "summary.json").read_text())
    assert summary["tokens"] == len(whole) + 2  # a line end joins the splits
    assert summary["vocabulary_size"] == len(np.unique(whole)) + 1
    frequent = pd.read_csv(layout.reports("ngrams", "subword", "frequencies.csv"), keep_default_na=False)
    # 30 copies in each of three texts.
    assert frequent[frequent["n"] == 2].set_index("ngram")["count"][" sea came"] == 90
    assert not frequent["ngram"].str.contains(BYTE_TOKENS[0xC3]).any()

    names = [name for name in seqlm.open(layout.root) if name.startswith("subword-kneser-ney")]
    succeeded(run_command(layout.root, "arpa", ".", "subword.arpa", "--name", names[-1]))
    vocab = Vocab.load(layout.vocab("subword"))
    read = read_arpa(layout.root / "subword.arpa")
    assert set(read.tokens) == {"", *vocab.tokens}  # a mark is no text
    models, ids = build_models(*load_counts(layout.ngrams("subword"), vocab.key)), streams[-1]
    model = models[names[-1].removeprefix("subword-")]
    assert model.settings == {"unknown": "uniform"}  # no text has a subword that the vocabulary lacks
    found = read.probs(np.array([read.tokens.index(token) for token in vocab.decode(ids.tolist())]))
    assert np.log(found) == pytest.approx(np.log(model.probs(ids)), rel=1e-5)


def test_arpa_writes_the_model_that_was_counted(run_stage: RunStage, layout: Layout) -> None:
    succeeded(run_stage("ngrams", "--kind", "word"))
    train = load_split(layout.corpus("word"), "train")
    # Nothing that counting needs is left: neither the settings, nor the text, nor the encoded splits.
    for path in [layout.params, *layout.splits.iterdir(), *layout.corpus("word").glob("*.npy")]:
        path.unlink()

    def write(order: int) -> None:
        name = f"word-kneser-ney-{order}"
        assert succeeded(run_command(layout.root, "arpa", ".", "word.arpa", "--name", name)) == f"word.arpa: {name}\n"

    write(3)
    written = layout.root / "word.arpa"
    read = read_arpa(written)
    write_arpa(layout.root / "expected.arpa", KneserNey(count_ngrams(train, 8, 3), 3), ["<unk>", *read.tokens[3:]])
    assert written.read_bytes() == (layout.root / "expected.arpa").read_bytes()

    write(2)
    assert list(map(len, read_arpa(written).counts.tables)) == [8 + 2, len(set(pairwise(train.tolist())))]
    several = "holds several models: choose one with --name: word-uniform"
    refused(run_command(layout.root, "arpa", ".", "x.arpa"), 2, several)


def test_epsilons_that_are_given_are_not_chosen_on_val() -> None:
    text = np.array([1, 2, 1, 2, 1, 3])
    counts = count_ngrams(text, 4, 2)
    best, _ = tune_epsilons(counts, text, 2)
    for epsilons, expected in (("auto", best), ([0.5, 2.0], (0.5, 2.0))):
        settings = PARAMS["ngrams"] | {"laplace": {"epsilons": epsilons, "max_order": 2}}
        chosen, _ = choose_settings(counts, text, NgramsParams.model_validate(settings), has_unknown=True)
        models = Laplace.build(counts, chosen["laplace"])
        assert [(model.order, model.chosen_on_val) for model in models] == [(n, epsilons == "auto") for n in (1, 2)]
        assert models[-1].epsilons == expected


def test_epsilons_are_chosen_where_val_is_best() -> None:
    rng = np.random.default_rng(1)
    train, val = rng.integers(1, 5, 300), rng.integers(1, 5, 100_000)
    counts = count_ngrams(train, 5, 3)
    epsilons, curve = tune_epsilons(counts, val, 3)
    for order in (1, 2, 3):
        of_order = [(row["val_perplexity"], row["epsilon"]) for row in curve if row["order"] == order]
        assert min(of_order)[1] == epsilons[order - 1]
        # The curve shows what the model itself comes to.
        nll = token_nll(Laplace(counts, order, epsilons[:order]), val)
        assert min(of_order)[0] == pytest.approx(np.exp(nll.mean()))
    # The text has no order: bigrams say nothing, and the best model all but ignores them.
    assert epsilons[1] > 100
