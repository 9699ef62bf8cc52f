"""How time and memory grow with the text: every stage of the pipeline, with its default settings.

Writes natural texts of several sizes (the sources and documentation that are installed
here), runs every stage of `dvc.yaml` on each in a copy of the project, and prints the
seconds and the peak memory of each stage.

    python benchmarks/scale.py [--megabytes 10 100 1000] [--until ngrams@word] [--work build/scale]
"""

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from natural import write_natural_text
from processes import measured
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from smoke import change_params, copy_project  # noqa: E402 (the tools are no package)


def stage_commands(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the command of each stage of a project, in the order of its dvc.yaml."""
    reader = YAML(typ="safe", pure=True)
    params = reader.load(folder / "params.yaml")
    for name, stage in reader.load(folder / "dvc.yaml")["stages"].items():
        if "foreach" not in stage:
            yield name, command_of(stage["cmd"], params)
            continue
        items = params["runs"] if stage["foreach"] == "${runs}" else stage["foreach"]
        for item in items:
            cmd = stage["do"]["cmd"].replace("${item}", item).replace("${key}", item)
            yield f"{name}@{item}", command_of(cmd, params)


def command_of(cmd: str, params: dict) -> list[str]:
    program, *options = shlex.split(cmd.replace("${launcher}", params["launcher"]))
    return [sys.executable if program == "python" else program, *options]


def run(folder: Path, megabytes: int, until: str | None) -> None:
    """Run every stage, or those up to one, on a text of a size, in a new copy of the project."""
    folder.mkdir(parents=True)
    copy_project(folder)
    distinct = write_natural_text(folder / "natural.txt", megabytes * 10**6)
    if distinct < megabytes * 10**6:
        print(f"{megabytes:>9}  this machine has {distinct / 1e6:.0f} MB of text: the rest repeats it")
    change_params(folder / "params.yaml", {"download.corpus": "natural.txt"})
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    total = 0.0
    for name, command in stage_commands(folder):
        seconds, peak = measured(command, folder=folder, environment=environment)
        total += seconds
        print(f"{megabytes:>9}  {name:<26}{seconds:>9.1f}{peak:>10.2f}", flush=True)
        if name == until:
            break
    print(f"{megabytes:>9}  {'together':<26}{total:>9.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--until", help="The last stage that is run, as DVC names it.")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "scale")
    arguments = parser.parse_args()
    print(f"{'megabytes':>9}  {'stage':<26}{'seconds':>9}{'peak GiB':>10}")
    for megabytes in arguments.megabytes:
        folder = arguments.work.absolute() / str(megabytes)
        shutil.rmtree(folder, ignore_errors=True)
        run(folder, megabytes, arguments.until)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
