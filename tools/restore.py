"""Go back to the last commit after an experiment that failed or was killed, without losing anything.

A killed `dvc exp run` leaves HEAD detached from its branch, with the experiment's settings
staged, so that new commits would be on no branch. This script goes back to the branch, saves
all changes with `git stash`, new files in reports/ too, and lets DVC restore the data.

`python tools/restore.py --check` only says whether HEAD is detached in this way.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil

from check_lock import dvc, locked_stages, missing_outputs

# DVC's own records of what is running.
_LOCKS = Path(".dvc/tmp/rwlock")
_EXPERIMENT = Path(".dvc/tmp/exps/run/workspace/workspace.json")
_UNSAVED = "Can't remove the following unsaved files"
"""How DVC's error begins; then come the files, one on a line."""
_RUNNING = "refs/exps/exec/EXEC_HEAD"
_SETTINGS = Path("params.yaml")
_UNFINISHED = ("rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG")
# A stash is a commit, and Git may not know the user's name.
_IDENTITY = ("-c", "user.name=make restore", "-c", "user.email=restore@localhost")


class Refused(Exception):
    """The reason why nothing was done."""


def git(*arguments: str, check: bool = True) -> str:
    """Return the output of a Git command. Raises Refused with Git's own message if it fails."""
    result = subprocess.run(["git", *arguments], capture_output=True, text=True, encoding="utf-8", check=False)
    if check and result.returncode:
        raise Refused(" ".join(result.stderr.split()))
    return result.stdout.strip()


def succeeds(*arguments: str) -> bool:
    """Return whether a Git command ends with code 0."""
    return subprocess.run(["git", *arguments], capture_output=True, check=False).returncode == 0


def branch_left() -> str | None:
    """Return the branch from which a killed experiment detached HEAD; None if HEAD is on a branch or the user left it.

    DVC detaches HEAD at the commit of its branch; since then, only DVC and commits have moved it. An experiment that
    ended in any other way has removed its reference.
    """
    if succeeds("symbolic-ref", "--quiet", "HEAD") or not succeeds("show-ref", "--verify", "--quiet", _RUNNING):
        return None
    for move in git("reflog", "show", "--format=%gs", "HEAD", check=False).splitlines():
        found = re.match(r"checkout: moving from (\S+) to ", move)
        if found and succeeds("show-ref", "--verify", "--quiet", f"refs/heads/{found[1]}"):
            return found[1] if succeeds("merge-base", "--is-ancestor", found[1], "HEAD") else None
        if not found and not move.startswith(("commit", "dvc:", "reset: moving to HEAD")):
            return None
    return None


def refuse_to_lose() -> None:
    """Raise Refused if going back would disturb something in progress or lose commits."""
    for name in _UNFINISHED:
        if Path(git("rev-parse", "--git-path", name)).exists():
            raise Refused(f"Git is in the middle of something ({name}): finish or abort it, as `git status` says")
    if running := running_dvc():
        raise Refused(f"DVC is at work here (process {running}): wait for it, or stop it with Ctrl-C")
    lost = git("log", "--format=%h", "HEAD", "--not", "--branches", "--tags", "--remotes").split()
    if lost and not succeeds("symbolic-ref", "--quiet", "HEAD"):
        raise Refused(f"{len(lost)} commits up to {lost[0]} are on no branch: `git switch -c NAME` gives them one")


def running_dvc() -> int | None:
    """Return the id of a DVC process that works in this folder."""
    pids = set()
    for note in (_LOCKS, _EXPERIMENT):
        try:
            pids |= {int(pid) for pid in re.findall(r'"pid": (\d+)', note.read_text(encoding="utf-8"))}
        except OSError:
            continue
    return next((pid for pid in sorted(pids) if is_dvc(pid)), None)


def is_dvc(pid: int) -> bool:
    """Return whether this process exists and is DVC: its number may belong to another one by now."""
    try:
        paths = [Path(word) for word in psutil.Process(pid).cmdline()]
    except psutil.Error:
        return False
    # bin/dvc, dvc.exe, or dvc/__main__.py, as Python shows its own `-m dvc`.
    return any({path.name, path.parent.name} & {"dvc", "dvc.exe"} for path in paths)


def set_aside() -> None:
    """Save all changes since the last commit in a stash, and say which files changed."""
    # What an experiment adds, such as the results of a new run, would be in the way of its branch.
    if Path("reports").is_dir():
        git("add", "--all", "reports")
    # DVC may write new settings within the second in which Git last read the file, often with the same size. Git
    # compares times and sizes, and would not see the change.
    if _SETTINGS.exists():
        _SETTINGS.touch()
    changed = git("diff", "--name-only", "HEAD").splitlines()
    if not changed:
        return
    git("stash", "store", "--message", "set aside by make restore", git(*_IDENTITY, "stash", "create"))
    names = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
    print(f"set aside: {names}; `git stash show --patch` shows these changes, `git stash pop` restores them")


def checkout_data() -> int:
    """Let DVC restore the outputs; return its exit code.

    DVC refuses if it would replace files that it has not stored, such as a network that was trained by hand. Their
    outputs are moved aside first.
    """
    result = dvc(Path(), "checkout", "--allow-missing")
    if _UNSAVED in result.stderr:
        files = [Path(line) for line in result.stderr.partition(_UNSAVED)[2].splitlines()[1:]]
        folder = Path("data/set-aside", f"{time.time_ns()}")
        for stage in locked_stages().values():
            for output in (Path(each["path"]) for each in stage.get("outs", [])):
                if any(file.is_relative_to(Path.cwd() / output) for file in files):
                    (folder / output).parent.mkdir(parents=True, exist_ok=True)
                    shutil.move(output, folder / output)
                    print(f"moved {output}, which DVC has not stored, to {folder / output}")
        result = dvc(Path(), "checkout", "--allow-missing")
    print(result.stdout, end="")
    print(result.stderr, end="", file=sys.stderr)
    return result.returncode


def main() -> int:
    """Go back, or check; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether HEAD is detached")
    only_check = parser.parse_args().check
    try:
        branch = branch_left()
        if only_check:
            if branch:
                raise Refused(
                    f"a killed `dvc exp run` left HEAD detached from {branch}: `make restore` goes back to it"
                )
            return 0
        refuse_to_lose()
        set_aside()
        git("checkout", "--quiet", "--force", *([branch] if branch else []))
        git("update-ref", "-d", _RUNNING)
    except Refused as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 5
    print(f"back at {git('log', '-1', '--format=%h %s')}, on {git('branch', '--show-current') or 'no branch'}")
    code = checkout_data()
    if code == 0 and (missing := missing_outputs()):
        print(f"all files in Git are restored; {len(missing)} others are not in DVC's cache: `make repro` makes them")
    return code


if __name__ == "__main__":
    sys.exit(main())
