"""Scores all models of the pipeline on all splits."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import torch

from seqlm.diagnostics import Predictor, counting_predictor, network_predictor
from seqlm.evaluation import Scored, Stream, best_mixture, measure, read_stream, spelling_model
from seqlm.metrics import stream_nats
from seqlm.ngrams.models import FALLBACK_DISCOUNTS, KneserNey
from seqlm.ngrams.models import nats as ngram_nats
from seqlm.ngrams.storage import load_models
from seqlm.params.evaluate import DynamicParams
from seqlm.params.train import RunConfig
from seqlm.rnn.building import Model, load_model
from seqlm.rnn.dynamic import RmsRule, SgdRule, dynamic_nats, gradient_roots, trained_weights
from seqlm.vocab import SPLITS, Kind, Vocab, load_split, token_blocks

Streams = dict[str, Stream]
Say = Callable[[str], None]


def read_streams(corpus: Path, text: Path) -> dict[Kind, Streams]:
    """Return every split as a stream of characters and as one of words."""
    kinds: tuple[Kind, ...] = ("char", "word")
    found: dict[Kind, Streams] = {}
    for kind in kinds:
        vocab = Vocab.load(corpus / kind / "vocab.json")
        spelling = spelling_model(vocab)
        found[kind] = {}
        for split in SPLITS:
            tokens = [t for block in token_blocks(text / f"{split}.txt", kind, vocab.line_separator) for t in block]
            ids = load_split(corpus / kind, split)
            found[kind][split] = read_stream(vocab, ids, tokens, vocab.num_chars[split], spelling)
    return found


def score_ngrams(folder: Path, kind: Kind, vocab_size: int, streams: Streams, say: Say) -> list[Scored]:
    """Return the scores of every n-gram model of a kind, named ``KIND-MODEL``."""
    models = load_models(folder, vocab_size)
    estimated = [model for model in models.values() if isinstance(model, KneserNey)]
    if orders := sorted({order for model in estimated for order in model.fallback_orders}):
        discounts = ", ".join(f"{discount:g}" for discount in FALLBACK_DISCOUNTS)
        say(
            f"{kind}: too few different counts to estimate Kneser-Ney discounts of order "
            f"{', '.join(map(str, orders))}: {discounts} are taken"
        )
    return [
        Scored(f"{kind}-{name}", kind, {split: ngram_nats(model, streams[split].ids) for split in SPLITS})
        for name, model in models.items()
    ]


def score_runs(
    configs: Iterable[RunConfig], runs: Path, device: torch.device, streams: dict[Kind, Streams], say: Say
) -> list[Scored]:
    """Return the scores of every run."""
    scored = []
    for config in configs:
        say(f"scoring {config.run}")
        model = load_model(runs / config.run, device, run=config.run)
        nats = {split: stream_nats(model, streams[config.token][split].ids) for split in SPLITS}
        scored.append(Scored(config.run, config.token, nats))
    return scored


def score_extras(
    ngrams: list[Scored],
    runs: list[Scored],
    folder: Path,
    device: torch.device,
    streams: dict[Kind, Streams],
    mixtures: bool,
    dynamic: DynamicParams | None,
) -> tuple[list[Scored], dict[str, float]]:
    """Return scores of what can be made of the best models without training, and what was chosen on val.

    The run that is best on val is evaluated dynamically and mixed with the n-gram model
    of its kind that is best on val. Dynamic evaluation leaves train out.
    """
    best_run = min(runs, key=lambda run: val_bits(run, streams))
    partner = min((m for m in ngrams if m.kind == best_run.kind), key=lambda model: val_bits(model, streams))
    bases, extras = [best_run], []
    choices: dict[str, float] = {}
    if dynamic is not None:
        adapted, chosen = _score_dynamic(best_run, folder, device, streams[best_run.kind], dynamic)
        choices |= {f"dynamic_{name}": value for name, value in chosen.items()}
        bases.append(adapted)
        extras.append(adapted)
    if mixtures:
        for base in bases:
            mixture, choices[f"weight of {base.name}"] = best_mixture(base, partner)
            extras.append(mixture)
    return extras, choices


def char_predictors(
    ngrams: list[Scored], runs: list[Scored], folders: Mapping[str, Path], vocab_size: int, device: torch.device
) -> dict[str, Predictor]:
    """Return the models of characters to diagnose, the best on val first: every run, and the best that counts.

    ``folders`` names where the ``runs`` and the ``ngrams`` of characters lie.
    """

    def on_val(model: Scored) -> float:
        return float(model.nats["val"].sum())

    counted = min((model for model in ngrams if model.kind == "char"), key=on_val)
    models = load_models(folders["ngrams"], vocab_size)
    found = {}
    for model in sorted([counted, *(run for run in runs if run.kind == "char")], key=on_val):
        if model is counted:
            found[model.name] = counting_predictor(models[model.name.removeprefix("char-")])
        else:
            found[model.name] = network_predictor(load_model(folders["runs"] / model.name, device, run=model.name))
    return found


def val_bits(scored: Scored, streams: dict[Kind, Streams]) -> float:
    """Return the bits per character of a model on val; infinite where it gives a token no chance."""
    value = measure(scored.nats["val"], streams[scored.kind]["val"])["bits_per_character"]
    return float("inf") if value is None else float(value)


def _score_dynamic(
    run: Scored, folder: Path, device: torch.device, streams: Streams, dynamic: DynamicParams
) -> tuple[Scored, dict[str, float]]:
    """Return the run's dynamic scores of val and test, and the settings that were chosen on val."""
    model, every = load_model(folder / run.name, device, run=run.name), dynamic.every
    rules = list(_rules(model, streams["train"], dynamic))
    on_val = [dynamic_nats(model, streams["val"].ids, every=every, apply=rule.apply) for rule in rules]
    best = min(range(len(rules)), key=lambda index: float(on_val[index].sum()))
    on_test = dynamic_nats(model, streams["test"].ids, every=every, apply=rules[best].apply)
    return Scored(f"{run.name}+dynamic", run.kind, {"val": on_val[best], "test": on_test}), rules[best].settings


def _rules(model: Model, train: Stream, dynamic: DynamicParams) -> Iterator[SgdRule | RmsRule]:
    """Yield the rules of learning to choose from."""
    if dynamic.rule == "sgd":
        yield from (SgdRule(lr, dynamic.clip) for lr in dynamic.lrs)
        return
    roots = gradient_roots(model, train.ids, every=dynamic.every, num_segments=dynamic.segments)
    trained = trained_weights(model)
    yield from (RmsRule(lr, decay, roots, trained) for lr in dynamic.lrs for decay in dynamic.decays)
