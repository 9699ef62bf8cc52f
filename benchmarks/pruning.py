"""Smaller n-gram models of this project's run: what pruning by count and by order saves, and what it costs in bits.

python benchmarks/pruning.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import seqlm
from seqlm.core.files import write_csv
from seqlm.core.layout import Layout
from seqlm.models.fixed_ngrams import FixedNGram

ROOT = Path(__file__).parents[1]
TRIED: dict[str, list[tuple[list[int], int | None]]] = {
    "word-kneser-ney-3": [([], None), ([0, 0, 1], None), ([0, 1], None), ([], 2), ([], 1)],
    "char-kneser-ney-6": [
        ([], None),
        ([0, 0, 0, 0, 0, 1], None),
        ([0, 0, 0, 1], None),
        ([0, 1, 2], None),
        ([], 5),
        ([], 4),
    ],
}


def main() -> None:
    """Measure, print and write a row for each model."""
    models, rows = seqlm.open(ROOT), []
    texts = {
        split: Layout(ROOT).split(split).read_text(encoding="utf-8").removesuffix("\n") for split in ("val", "test")
    }
    for name, tried in TRIED.items():
        whole = cast("FixedNGram", models[name])
        for prune, order in tried:
            model = whole.pruned(prune, order)
            with TemporaryDirectory() as folder:
                model.to_arpa(Path(folder) / "model.arpa")
                model.save(Path(folder) / "saved")
                arpa = (Path(folder) / "model.arpa").stat().st_size
                saved = sum(path.stat().st_size for path in (Path(folder) / "saved").rglob("*") if path.is_file())
            bits = {split: model.score(text).bits_per_character for split, text in texts.items()}
            row = {
                "model": name, "order": model.info.order, "prune": " ".join(map(str, prune)) or "nothing",
                "ngrams": sum(map(len, model.model.counts.tables[: model.info.order])), "arpa_mb": round(arpa / 1e6, 2),
                "saved_mb": round(saved / 1e6, 2),
                "val_bits": round(bits["val"], 3), "test_bits": round(bits["test"], 3),
            }  # fmt: skip
            rows.append(row)
            print(row)
    write_csv(Layout(ROOT).benchmark("pruning.csv"), rows)


if __name__ == "__main__":
    main()
