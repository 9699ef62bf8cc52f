"""``python -m seqlm export DIR``: write the models of a finished run to a folder that needs no
pipeline."""

import argparse
import sys
from pathlib import Path

import seqlm
from seqlm.core.errors import SeqlmError


def main() -> int:
    """Run a command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m seqlm")
    parser.add_argument("--version", action="version", version=f"seqlm {seqlm.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser(
        "export", help="write trained models to a folder that seqlm.open() reads"
    )
    export.add_argument("folder", type=Path, help="the new folder")
    export.add_argument(
        "--model",
        dest="names",
        action="append",
        default=[],
        help="only this model; may be repeated",
    )
    export.add_argument(
        "--root", type=Path, default=Path(), help="the folder that holds params.yaml"
    )
    options = parser.parse_args()
    from seqlm.models.index import open_models
    from seqlm.models.saving import save

    try:
        models = open_models(options.root)
        num_files = save(options.folder, [models[name] for name in options.names or models])
    except SeqlmError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{options.folder}: {num_files} files; seqlm.open({str(options.folder)!r}) reads them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
