"""n-gram models against KenLM: the same text, the same split, both columns.

Builds `lmplz` from KenLM's source package on PyPI (needs cmake and Boost), trains it on the training split of a corpus
as a single line, and queries test as a single line. Then times counting and estimation on several million words drawn
from a Zipf model, counting characters of few and of many kinds, and the way from raw natural text to an ARPA file: `tr`
and `lmplz`, ours from Python, both on the training text, and the stages, which also split and describe the text.

    python benchmarks/ngrams.py [--corpus data/corpus] [--work build/kenlm] [--million-words 5]
        [--megabytes 100 1000] [--rounds 3] > benchmarks/results/ngrams.txt
"""

import argparse
import shutil
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from natural import write_natural_text
from origin import origin
from processes import measured
from words import VOCAB_SIZE, zipf_text

from seqlm.core.files import sha256_of_file, write_json
from seqlm.core.layout import Layout
from seqlm.ngrams.arpa import write_arpa
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.vocab.corpus import load_split
from seqlm.vocab.vocabulary import Vocab

ROOT = Path(__file__).resolve().parent.parent
ORDERS = {"char": (3, 4, 5, 6), "word": (3,)}


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
    prepare_build(next(path for path in work.glob("kenlm-*") if path.is_dir()), work / "build")
    subprocess.run(
        ["cmake", "--build", work / "build", "--target", "lmplz", "-j", "2"], check=True, stdout=subprocess.DEVNULL
    )
    return program


def prepare_build(source: Path, folder: Path) -> None:
    """Let CMake look for everything that building lmplz takes; exit with one line if something is missing."""
    if shutil.which("cmake") is None:
        sys.exit("lmplz cannot be built: there is no cmake")
    command = ["cmake", "-S", source, "-B", folder, "-DCMAKE_BUILD_TYPE=Release"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "Boost" in done.stderr:
        sys.exit("lmplz cannot be built: Boost is missing (Debian and Ubuntu have it as libboost-all-dev)")
    if done.returncode:
        sys.exit(f"lmplz cannot be built: {' '.join(done.stderr.split())}")


def written(ids: np.ndarray) -> str:
    """Return tokens as words that no tool splits: t1 t2 ..."""
    return " ".join(f"t{token}" for token in ids) + "\n"


def perplexity(surprisals: np.ndarray) -> float:
    return float(np.exp(surprisals.mean()))


def kenlm_perplexities(lmplz: Path, work: Path, order: int, train: np.ndarray, test: np.ndarray) -> tuple[float, float]:
    """Return KenLM's test perplexity over tokens 2..N, with unknown tokens and without."""
    import kenlm

    arpa = work / f"order{order}.arpa"
    command = [lmplz, "-o", str(order), "--discount_fallback", "-S", "1G", "--skip_symbols"]
    with arpa.open("w") as out:
        subprocess.run(command, input=written(train), stdout=out, stderr=subprocess.DEVNULL, text=True, check=True)
    model = kenlm.Model(str(arpa))
    # KenLM adds a mark for the beginning of the sentence. The first token is given, not scored.
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
            surprisals = token_nll(KneserNey(count_ngrams(train, len(vocab), order), order), test)
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


def compare_speed(num_words: int, rounds: int, lmplz: Path, work: Path) -> None:
    ids = zipf_text(num_words)
    print(f"\n{num_words:,} words, {len(np.unique(ids)):,} of them distinct; best of {rounds}, in turn")
    theirs, ours, model_to_arpa = float("inf"), float("inf"), float("inf")
    names = [f"t{token}" for token in range(VOCAB_SIZE)]
    for _ in range(rounds):
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
    their_time, their_peak = min(measured(lmplz_command, text, work / "theirs.arpa") for _ in range(rounds))
    print("Kneser-Ney of order 3, to an ARPA file")
    print(f"  lmplz, from text of words                 {their_time:5.2f} s, peak memory {their_peak:.2f} GiB")
    print(f"  ours, from ids, as the stage has them     {model_to_arpa:5.2f} s")


def compare_alphabets(num_chars: int, rounds: int) -> None:
    """Count the same characters with few and with many kinds: n-grams of the latter are too wide for one key."""
    few = zipf_text(num_chars) % 97
    many, rng = few.astype(np.uint16), np.random.default_rng(0)
    rare = rng.choice(num_chars, num_chars // 50, replace=False)
    many[rare] = rng.integers(97, 8204, len(rare))
    times = {97: float("inf"), 8204: float("inf")}
    for _ in range(rounds):
        for size, ids in ((97, few), (8204, many)):
            times[size] = min(times[size], timed(partial(count_ngrams, ids, size, 6)))
    print(f"\n{num_chars:,} characters, counting orders 1 to 6; best of {rounds}, in turn")
    print(f"  97 kinds {times[97]:.2f} s, 8,204 kinds, 2 % of the text rare ones, {times[8204]:.2f} s")


FIT = """
import sys, pathlib, seqlm
text = pathlib.Path(sys.argv[1]).read_bytes().decode()
seqlm.fit_ngram(text, 3, normalise="letters").to_arpa(sys.argv[2])
"""


def compare_raw(megabytes: int, rounds: int, lmplz: Path, work: Path) -> None:
    """From raw text to a word model of order 3; the stages handle all splits, the others only train.

    Natural text repeats if the machine has less than is asked for.
    """
    folder = work / "raw"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data" / "raw").mkdir(parents=True)
    raw, train, arpa = (folder / "data" / "raw" / "corpus.txt", folder / "train.txt", folder / "model.arpa")
    write_natural_text(raw, megabytes * 10**6)
    shutil.copy(ROOT / "params.yaml", folder)
    record = {"line_separator": "", "file": "natural.txt", "sha256": sha256_of_file(raw)}
    write_json(Layout(folder).corpus_record, record)
    with raw.open("rb") as source, train.open("wb") as target:
        target.write(source.read(megabytes * 8 * 10**5).decode(errors="ignore").encode())
    letters = f"tr -cs 'A-Za-z\\n' ' ' <{train} | tr A-Z a-z"
    their_command = ["sh", "-c", f"{letters} | {lmplz} -o 3 --discount_fallback -S 2G >{arpa}"]
    stages: dict[str, list[str | Path]] = {
        "preprocess": ["preprocess.py"],
        "vocab": ["vocab.py", "--kind", "word"],
        "ngrams": ["ngrams.py", "--kind", "word"],
        "vocab@char": ["vocab.py", "--kind", "char"],
        "ngrams@char": ["ngrams.py", "--kind", "char"],
    }
    our_commands: list[list[str | Path]] = [
        [sys.executable, ROOT / "stages" / script, "--root", folder, *options] for script, *options in stages.values()
    ]
    # After the stages of words, with which its time is added up.
    our_commands.insert(3, [sys.executable, "-m", "seqlm", "arpa", folder, arpa, "--name", "word-kneser-ney-3"])
    names = [*list(stages)[:3], "ARPA", *list(stages)[3:]]
    theirs, fits, ours = [], [], []
    for _ in range(rounds):
        theirs.append(measured(their_command))
        fits.append(measured([sys.executable, "-c", FIT, train, arpa]))
        parts = [measured(command) for command in our_commands]
        # Those of characters are only measured.
        ours.append((sum(seconds for seconds, _ in parts[:-2]), max(peak for _, peak in parts[:-2]), parts))
    (their_time, their_peak), (fit_time, fit_peak), (our_time, our_peak, parts) = (min(theirs), min(fits), min(ours))
    named = zip(names, parts, strict=True)
    each = ", ".join(f"{name} {seconds:.1f} s and {peak:.2f} GiB" for name, (seconds, peak) in named)
    print(f"\n{megabytes} MB of raw natural text to a word model of order 3; best of {rounds}, in turn")
    rows = {
        "tr and lmplz, from train": (their_time, their_peak),
        "fit_ngram, from train": (fit_time, fit_peak),
        "our stages, from the whole text": (our_time, our_peak),
    }
    for name, (seconds, peak) in rows.items():
        print(f"  {name:31}{seconds:6.1f} s, {seconds / their_time:.2f} times, peak memory {peak:.2f} GiB")
    print(f"  {each}")
    shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("data/corpus"))
    parser.add_argument("--work", type=Path, default=Path("build/kenlm"))
    parser.add_argument("--million-words", type=float, default=5)
    parser.add_argument("--megabytes", type=int, nargs="*", default=[100])
    parser.add_argument("--rounds", type=int, default=3, help="of which the fastest counts")
    arguments = parser.parse_args()
    lmplz = build_lmplz(arguments.work)
    print(origin())
    compare_quality(arguments.corpus, lmplz, arguments.work)
    compare_speed(int(arguments.million_words * 1e6), arguments.rounds, lmplz, arguments.work)
    compare_alphabets(int(arguments.million_words * 2e6), arguments.rounds)
    for megabytes in arguments.megabytes:
        compare_raw(megabytes, arguments.rounds, lmplz.absolute(), arguments.work.absolute())


if __name__ == "__main__":
    main()
