"""Imported first by every stage script: one clear line if this Python lacks a package of the
project."""

import sys

try:
    import click  # noqa: F401
    import psutil  # noqa: F401

    import seqlm.core.settings  # noqa: F401
except ModuleNotFoundError as missing:
    sys.exit(
        f"error: this Python ({sys.executable}) has no package {missing.name!r}: run `make repro`, "
        "or put the environment first on PATH as the README says"
    )
