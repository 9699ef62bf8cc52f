"""n-gram models against KenLM: the same text, the same split, both columns.

Builds `lmplz` from KenLM's source package on PyPI (needs cmake and Boost), trains it on
the training split of a corpus, one line, and queries every split, one line. Then times
counting and estimation on a text of several million words drawn from a Zipf model.

    python benchmarks/ngrams.py [--corpus data/corpus] [--work build/kenlm] [--million-words 5]
"""

import argparse
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from processes import measured
from words import VOCAB_SIZE, zipf_text

from seqlm.ngrams.arpa_writing import write_arpa
from seqlm.ngrams.counting import Chunking, count_ngrams
from seqlm.ngrams.models import KneserNey, nats
from seqlm.ngrams.whole_text import read_whole
from seqlm.vocab.streams import load_split
from seqlm.vocab.vocabulary import Vocab

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


def perplexity(surprisals: np.ndarray) -> float:
    return float(np.exp(surprisals.mean()))


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
    return perplexity(surprisals), perplexity(surprisals[known])


def compare_quality(corpus: Path, lmplz: Path, work: Path) -> None:
    print("test perplexity                 KenLM      ours     ratio")
    for kind, orders in ORDERS.items():
        vocab = Vocab.load(corpus / kind / "vocab.json")
        train, test = (np.asarray(load_split(corpus / kind, split)) for split in ("train", "test"))
        for order in orders:
            theirs = kenlm_perplexities(lmplz, work, order, train, test)
            surprisals = nats(KneserNey(count_ngrams(train, len(vocab), order), order), test)
            known = test[1:] != 0
            ours = perplexity(surprisals), perplexity(surprisals[known])
            for label, their, our in zip(("all tokens", "known tokens"), theirs, ours, strict=True):
                if label == "all tokens" or kind == "word":
                    print(f"{kind}, order {order}, {label:<14} {their:>9.3f} {our:>9.3f} {our / their:>9.4f}")


def counter_counts(ids: np.ndarray) -> None:
    words = ids.tolist()
    Counter(words)
    Counter(pairwise(words))
    Counter(zip(words, words[1:], words[2:], strict=False))


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def estimate(text: Path, arpa: Path) -> None:
    """From a text of words to a Kneser-Ney model of order 3 in an ARPA file, as the stages do it."""
    with tempfile.TemporaryDirectory(dir=arpa.parent) as folder:
        whole = read_whole([text], "word", "", Chunking(2**31, Path(folder)))
        write_arpa(arpa, KneserNey(whole.counts, 3), whole.tokens)


def compare_speed(num_words: int, lmplz: Path, work: Path) -> None:
    ids = zipf_text(num_words)
    print(f"\n{num_words:,} words, {len(np.unique(ids)):,} of them distinct; best of {ROUNDS}, in turn")
    theirs, ours, model_to_arpa = float("inf"), float("inf"), float("inf")
    names = [f"t{token}" for token in range(VOCAB_SIZE)]
    for _ in range(ROUNDS):
        theirs = min(theirs, timed(lambda: counter_counts(ids)))
        ours = min(ours, timed(lambda: count_ngrams(ids, VOCAB_SIZE, 3)))
        model_to_arpa = min(
            model_to_arpa,
            timed(lambda: write_arpa(work / "ours.arpa", KneserNey(count_ngrams(ids, VOCAB_SIZE, 3), 3), names)),
        )
    print(f"counting orders 1 to 3: collections.Counter {theirs:.1f} s, ours {ours:.2f} s, {theirs / ours:.1f} times")
    text = work / "zipf.txt"
    text.write_text(written(ids))
    lmplz_command = [lmplz, "-o", "3", "--discount_fallback", "-S", "2G"]
    our_command = [sys.executable, __file__, "--estimate", text, work / "ours.arpa"]
    rounds = [(measured(lmplz_command, text, work / "theirs.arpa"), measured(our_command)) for _ in range(ROUNDS)]
    (their_time, their_peak), (our_time, our_peak) = (min(results) for results in zip(*rounds, strict=True))
    print("Kneser-Ney of order 3, to an ARPA file")
    print(f"  lmplz, from text                          {their_time:5.2f} s, peak memory {their_peak:.2f} GiB")
    print(f"  ours, from text, a process of its own     {our_time:5.2f} s, peak memory {our_peak:.2f} GiB")
    print(f"  ours, from ids, as the stage has them     {model_to_arpa:5.2f} s")
    print(f"  lmplz takes {their_time / our_time:.2f} times ours from text, {their_time / model_to_arpa:.2f} from ids")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("data/corpus"))
    parser.add_argument("--work", type=Path, default=Path("build/kenlm"))
    parser.add_argument("--million-words", type=float, default=5)
    parser.add_argument("--estimate", type=Path, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.estimate:
        estimate(*arguments.estimate)
        return
    lmplz = build_lmplz(arguments.work)
    compare_quality(arguments.corpus, lmplz, arguments.work)
    compare_speed(int(arguments.million_words * 1e6), lmplz, arguments.work)


if __name__ == "__main__":
    main()
