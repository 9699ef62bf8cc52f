"""Build the wheel, install it alone in an environment of its own, and train, score and generate there.

    python tools/try_wheel.py [TEXT] [--model lstm] [--wheel FOLDER]

Prints what the commands print, with seconds and memory. It needs the network, for the packages of the light
installation. FOLDER holds a wheel that is there already.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
THREE_LINES = """
import sys, time
from pathlib import Path
import psutil
import seqlm

begin = time.monotonic()
model = seqlm.fit_network(Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2], progress=False)
print(f"{time.monotonic() - begin:.1f} s to train {len(model.history)} epochs")
print(model.score("The time traveller smiled.").bits_per_character)
print(model.generate("The ", 200, seed=1))
model.save("my-model")
assert seqlm.open("my-model").saved == [sys.argv[2]]
missing = [name for name in ("torch", "dvc") if name in sys.modules]
print(f"{psutil.Process().memory_info().rss / 2**30:.2f} GiB of memory at the end", *missing)
"""


def main() -> int:
    """Try the wheel, and return the exit code of the first command that fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, nargs="?", default=ROOT / "data" / "sample.txt")
    parser.add_argument("--model", default="lstm")
    parser.add_argument("--wheel", type=Path)
    options = parser.parse_args()
    text = options.text.resolve()
    with TemporaryDirectory() as name:
        folder = Path(name)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

        def run(*command: object) -> None:
            subprocess.run([str(word) for word in command], check=True, cwd=folder, env=environment)

        if not options.wheel:
            run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
        (wheel,) = (options.wheel or folder).resolve().glob("*.whl")
        run(sys.executable, "-m", "venv", folder / "environment")
        programs = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
        run(programs / "python", "-m", "pip", "install", "--quiet", wheel)
        (folder / "three_lines.py").write_text(THREE_LINES, encoding="utf-8")
        try:
            run(programs / "python", "three_lines.py", text, options.model)
            command = programs / "seqlm"
            fit = "fit", text, "--model", options.model, "--output", "other", "--quiet"
            run(command, *fit, "--set", "num_epochs=1")
            run(command, "score", "other", text)
            run(command, "generate", "other", "The ", "--num-preds", "200", "--seed", "1")
        except subprocess.CalledProcessError as error:
            return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
