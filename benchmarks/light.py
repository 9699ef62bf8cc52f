"""The light installation: its size, and how long it takes to import, to open exported models, and to score.

Makes the wheel and an environment of its own, which needs the network, and exports models of this project's run. Each
process is timed twice: in the first one, compiled loops are made; the second one loads them from the disk.

    python benchmarks/light.py "2 cores of an AMD EPYC"
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import seqlm
from seqlm.core.files import write_csv
from seqlm.core.layout import Layout

ROOT = Path(__file__).parents[1]
MODELS = ("char-kneser-ney-6", "word-kneser-ney-3", "lstm", "lstm+char-by-word-kneser-ney-3")
ROUNDS = 3
"""Processes that are timed when the loops are compiled; the fastest counts."""
TIMED = """
import sys, time
start = time.perf_counter()
import seqlm
imported = time.perf_counter()
models = seqlm.open(sys.argv[1])
opened = time.perf_counter()
models[sys.argv[2]].score("it was a fine day on the river and the sun was hot")
scored = time.perf_counter()
print(imported - start, opened - imported, scored - opened)
"""


def run(*command: object, **environment: str) -> str:
    """Run a command outside of the project; return what it prints."""
    variables = {**os.environ, "PYTHONPATH": "", **environment}
    return subprocess.run(list(map(str, command)), env=variables, check=True, stdout=subprocess.PIPE, text=True).stdout


def light_environment(folder: Path) -> Path:
    """Make the wheel from a copy of the sources, and install it; return the environment."""
    project = folder / "project"
    shutil.copytree(ROOT / "src", project / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, project)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, project)
    run(sys.executable, "-m", "venv", folder / "light")
    (wheel,) = folder.glob("seqlm-*.whl")
    run(folder / "light" / "bin" / "python", "-m", "pip", "install", "--quiet", wheel)
    return folder / "light"


def size(name: str, environment: Path) -> dict[str, object]:
    """Return how many packages an environment has, without pip and setuptools, and their megabytes."""
    listed = json.loads(run(environment / "bin" / "python", "-m", "pip", "list", "--format", "json"))
    packages = [each for each in listed if each["name"] not in ("pip", "setuptools")]
    (site,) = environment.glob("lib/python*/site-packages")
    left_out = {"pip", "setuptools", "pkg_resources", "_distutils_hack"}
    files = (
        path
        for each in site.iterdir()
        if each.name.partition("-")[0] not in left_out
        for path in [each, *each.rglob("*")]
    )
    num_bytes = sum(path.lstat().st_size for path in files if path.is_file())
    return {"environment": name, "packages": len(packages), "megabytes": round(num_bytes / 1e6)}


def times(environment: Path, folder: Path, model: str) -> dict[str, object]:
    """Return the seconds that a model takes in an environment, from an exported folder of its own."""
    seqlm.open(ROOT)[model].save(folder / model)
    command = environment / "bin" / "python", "-c", TIMED, folder / model, model
    cache = str(folder / "cache" / model)
    all_found = [[float(part) for part in run(*command, NUMBA_CACHE_DIR=cache).split()] for _ in range(1 + ROUNDS)]
    first, best = all_found[0], [min(each) for each in zip(*all_found[1:], strict=True)]
    megabytes = sum(path.stat().st_size for path in (folder / model).rglob("*") if path.is_file()) / 1e6
    seconds = {"import": best[0], "open": best[1], "first_score": best[2], "compile_once": max(first[2] - best[2], 0.0)}
    return {"model": model, "megabytes": round(megabytes, 1)} | {name: round(each, 2) for name, each in seconds.items()}


def main(machine: str | None) -> None:
    """Measure and print both tables; write them if the machine is named."""
    with TemporaryDirectory() as name:
        light = light_environment(Path(name))
        sizes = [size("seqlm", light), size("seqlm[pipeline,test]", Path(sys.prefix))]
        timed = [times(light, Path(name), model) for model in MODELS]
    for table, rows in (("light_size", sizes), ("light_time", timed)):
        print(*rows, sep="\n")
        if machine is not None:
            write_csv(Layout(ROOT).benchmark(f"{table}.csv"), [{"machine": machine, **row} for row in rows])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
