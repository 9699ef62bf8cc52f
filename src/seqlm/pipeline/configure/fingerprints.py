"""Fingerprints of the code of each stage, so that DVC reruns a stage only if its numbers may have
changed.

The code of a stage is its script, or for the stages in :data:`SHARED_SCRIPTS` the module that does
the work, and what these import (:mod:`seqlm.core.sources`).
"""

from collections.abc import Mapping
from pathlib import Path

from seqlm.core.sources import code_hash, source_files

SHARED_SCRIPTS = {
    "score": "seqlm.pipeline.score.networks",
    "score-ngrams": "seqlm.pipeline.score.ngrams",
}
"""Stages that share one script, and the module that does the work of each."""
_WITHOUT_FINGERPRINT = {"configure", "environment"}
"""Files in ``stages`` that have no fingerprint: the stage that writes them, and what is not a
stage."""
DYNAMIC_IMPORTS = {"gradients": {"seqlm.networks.framework"}}
"""Modules that a stage imports by name, whatever the runs."""


def fingerprints(root: Path, network_modules: Mapping[str, str]) -> dict[str, str]:
    """Return a text for each stage, ``STAGE.txt``, and one for each run, ``runs/RUN.txt``: hashes
    of its modules.

    ``root`` holds ``src`` and ``stages``. ``network_modules``: run -> the module of its network,
    which no other module imports by name.
    """
    names = {path.stem for path in (root / "stages").glob("*.py")} - _WITHOUT_FINGERPRINT
    entries = {name: f"stages.{name}" for name in sorted(names)} | SHARED_SCRIPTS
    entries |= {f"runs/{run}": module for run, module in network_modules.items()}
    texts = {}
    for name, entry in entries.items():
        files = source_files({entry, *DYNAMIC_IMPORTS.get(name, ())}, (root / "src", root))
        lines = (f"{code_hash(path)} {module}\n" for module, path in files.items())
        texts[f"{name}.txt"] = "".join(lines)
    return texts
