"""Small tables of the learning curves, for captions and figures."""

import pandas as pd

FAMILIES = {"char-kneser-ney": "ngram", "lstm": "network", "lstm+n-gram": "mixture"}
TIMES = pd.DataFrame(
    [("A", "lstm", 1.0, 3.0), ("A", "lstm", 2.0, 2.5), ("A", "gru", 1.0, 2.6), ("A", "gru", 3.0, 2.55)],
    columns=["corpus", "model", "seconds", "val_bits"],
)


def curves(*bits: tuple[float, float, float], corpus: str = "A") -> pd.DataFrame:
    """Return the test bits of an n-gram model, a network and a mixture for 10,000, 20,000 ... characters."""
    rows = [
        (corpus, model, family, 10_000 * 2**power, value)
        for power, values in enumerate(bits)
        for (model, family), value in zip(FAMILIES.items(), values, strict=True)
    ]
    return pd.DataFrame(rows, columns=["corpus", "model", "family", "train_chars", "test_bits"])
