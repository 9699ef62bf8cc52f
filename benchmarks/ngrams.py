"""n-gram models against KenLM: the same text, the same split, both columns.

Builds `lmplz` from KenLM's source package on PyPI (needs cmake and Boost), trains it on
the training split of a corpus, one line, and queries every split, one line. Then times
counting and estimation on a text of several million words drawn from a Zipf model.

    python benchmarks/ngrams.py [--corpus data/corpus] [--work build/kenlm] [--million-words 5]
"""

import argparse
import os
import resource
import subprocess
import sys
import tarfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np

from seqlm.metrics import perplexity
from seqlm.ngrams.counts import count_ngrams
from seqlm.ngrams.models import KneserNey, nats
from seqlm.vocab import Vocab, load_split

ORDERS = {"char": (3, 4, 5, 6), "word": (3,)}
ROUNDS = 3


def build_lmplz(work: Path) -> Path:
    """Return the path of lmplz, built from the source package of KenLM."""
    program = work / "build" / "bin" / "lmplz"
    if program.exists():
        return program
    work.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "kenlm", "kenlm"]
    subprocess.run([*pip, "--dest", str(work)], check=True)
    with tarfile.open(next(work.glob("kenlm-*.tar.gz"))) as archive:
        archive.extractall(work, filter="data")
    source = next(path for path in work.glob("kenlm-*") if path.is_dir())
    subprocess.run(
        ["cmake", "-S", source, "-B", work / "build", "-DCMAKE_BUILD_TYPE=Release"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run(
        ["cmake", "--build", work / "build", "--target", "lmplz", "-j", "2"], check=True, stdout=subprocess.DEVNULL
    )
    return program


def written(ids: np.ndarray) -> str:
    """Return tokens as words that no tool takes apart: t1 t2 ..."""
    return " ".join(f"t{token}" for token in ids) + "\n"


def kenlm_perplexities(lmplz: Path, work: Path, order: int, train: np.ndarray, test: np.ndarray) -> tuple[float, float]:
    """Return KenLM's test perplexity with unknown tokens and without, tokens 2..N."""
    import kenlm

    arpa = work / f"order{order}.arpa"
    command = [lmplz, "-o", str(order), "--discount_fallback", "-S", "1G", "--skip_symbols"]
    with arpa.open("w") as out:
        subprocess.run(command, input=written(train), stdout=out, stderr=subprocess.DEVNULL, text=True, check=True)
    model = kenlm.Model(str(arpa))
    # The sentence's begin and end are KenLM's own; the first token is given, not scored.
    scores = list(model.full_scores(written(test).strip(), bos=True, eos=False))[1:]
    surprisals = -np.array([score for score, _, _ in scores]) * np.log(10)
    known = np.array([not unknown for _, _, unknown in scores])
    return perplexity(surprisals.sum(), len(surprisals)), perplexity(surprisals[known].sum(), int(known.sum()))


def compare_quality(corpus: Path, lmplz: Path, work: Path) -> None:
    print("test perplexity                 KenLM      ours     ratio")
    for kind, orders in ORDERS.items():
        vocab = Vocab.load(corpus / kind / "vocab.json")
        train, test = (np.asarray(load_split(corpus / kind, split)) for split in ("train", "test"))
        for order in orders:
            theirs = kenlm_perplexities(lmplz, work, order, train, test)
            surprisals = nats(KneserNey(count_ngrams(train, len(vocab), order), order), test)
            known = test[1:] != 0
            ours = (
                perplexity(surprisals.sum(), len(surprisals)),
                perplexity(surprisals[known].sum(), int(known.sum())),
            )
            for label, their, our in zip(("all tokens", "known tokens"), theirs, ours, strict=True):
                if label == "all tokens" or kind == "word":
                    print(f"{kind}, order {order}, {label:<14} {their:>9.3f} {our:>9.3f} {our / their:>9.4f}")


def zipf_text(num_words: int) -> np.ndarray:
    """Return word ids of a text whose next word depends on the last, ranks spread as in Zipf's law."""
    rng = np.random.default_rng(0)
    ids = np.minimum(rng.zipf(1.3, num_words), 50_000)
    repeats = rng.random(num_words) < 0.5
    # Half of the words follow from the word before, so that n-grams repeat as they do in text.
    ids[1:] = np.where(repeats[1:], (ids[:-1] * 7919) % 50_000 + 1, ids[1:])
    return ids


def counter_counts(ids: np.ndarray) -> None:
    words = ids.tolist()
    Counter(words)
    Counter(pairwise(words))
    Counter(zip(words, words[1:], words[2:], strict=False))


def timed(action: object, rounds: int = ROUNDS) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def compare_speed(num_words: int, lmplz: Path, work: Path) -> None:
    ids = zipf_text(num_words)
    print(f"\n{num_words:,} words, {len(np.unique(ids)):,} of them distinct; best of {ROUNDS}, in turn")
    theirs, ours = float("inf"), float("inf")
    for _ in range(ROUNDS):
        theirs = min(theirs, timed(lambda: counter_counts(ids), 1))
        ours = min(ours, timed(lambda: count_ngrams(ids, 50_001, 3), 1))
    print(f"counting orders 1 to 3: collections.Counter {theirs:.1f} s, ours {ours:.2f} s, {theirs / ours:.1f} times")
    text = work / "zipf.txt"
    text.write_text(written(ids))

    def run_lmplz() -> None:
        with text.open() as source, Path(os.devnull).open("w") as out:
            command = [lmplz, "-o", "3", "--discount_fallback", "-S", "2G"]
            subprocess.run(command, stdin=source, stdout=out, stderr=subprocess.DEVNULL, check=True)

    their_time = timed(run_lmplz, 1)
    our_time = timed(lambda: KneserNey(count_ngrams(ids, 50_001, 3), 3), 1)
    print(f"Kneser-Ney of order 3: lmplz, text to ARPA, {their_time:.1f} s")
    print(f"                       ours, ids to a model in memory, {our_time:.1f} s")
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("data/corpus"))
    parser.add_argument("--work", type=Path, default=Path("build/kenlm"))
    parser.add_argument("--million-words", type=float, default=5)
    arguments = parser.parse_args()
    lmplz = build_lmplz(arguments.work)
    compare_quality(arguments.corpus, lmplz, arguments.work)
    compare_speed(int(arguments.million_words * 1e6), lmplz, arguments.work)


if __name__ == "__main__":
    main()
