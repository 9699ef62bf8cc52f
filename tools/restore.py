"""Go back to the last commit after an experiment that failed or was killed, without losing anything.

A killed `dvc exp run` leaves HEAD detached from its branch, with the experiment's settings
staged, so that new commits would be on no branch. This script goes back to the branch, saves
all changes with `git stash`, new files in reports/ too, and lets DVC restore the data.

`python tools/restore.py --check` only says whether HEAD is detached in this way, or DVC at work.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from check_lock import dvc, missing_outputs

_UNSAVED = "Can't remove the following unsaved files"
"""How DVC's error begins; then come the files, one on a line."""
_RUNNING = "refs/exps/exec/EXEC_HEAD"
"""DVC removes this reference when an experiment ends in any way but being killed."""
_UNFINISHED = ("rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG")
# A stash is a commit, and Git may not know the user's name.
_IDENTITY = ("-c", "user.name=make restore", "-c", "user.email=restore@localhost")


def say(text: str) -> None:
    """Print a line; go on if nobody reads it, as after `| head`."""
    with suppress(BrokenPipeError):
        os.write(1, f"{text}\n".encode())


def git(*arguments: str, check: bool = True) -> str:
    """Return the output of a Git command; end with Git's own message if it fails."""
    result = subprocess.run(["git", *arguments], capture_output=True, text=True, encoding="utf-8", check=False)
    if check and result.returncode:
        refuse(" ".join(result.stderr.split()))
    return result.stdout.strip()


def refuse(reason: str) -> None:
    """End with one line."""
    print(f"error: {reason}", file=sys.stderr)
    sys.exit(5)


def branch_left() -> str:
    """Return the branch from which a killed experiment detached HEAD; "" if HEAD is on a branch or the user left it."""
    if git("branch", "--show-current") or not git("for-each-ref", _RUNNING):
        return ""
    before = git("rev-parse", "--symbolic-full-name", "@{-1}", check=False)
    return before.removeprefix("refs/heads/") if before.startswith("refs/heads/") else ""


def refuse_to_lose() -> None:
    """End if going back would disturb something in progress or lose commits."""
    for name in _UNFINISHED:
        if Path(git("rev-parse", "--git-path", name)).exists():
            refuse(f"Git is in the middle of something ({name}): finish or abort it, as `git status` says")
    refuse_if_dvc_works()
    lost = git("log", "--format=%h", "HEAD", "--not", "--branches", "--tags", "--remotes").split()
    if lost and not git("branch", "--show-current"):
        refuse(f"{len(lost)} commits up to {lost[0]} are on no branch: `git switch -c NAME` gives them one")


def refuse_if_dvc_works() -> None:
    """End if a process of DVC is at work in this folder."""
    for process in psutil.process_iter(["pid", "cmdline", "cwd"]):
        names = {part for word in (process.info["cmdline"] or ())[:2] for part in Path(word).with_suffix("").parts[-2:]}
        if "dvc" in names and process.info["cwd"] == str(Path.cwd()):
            refuse(f"DVC is at work here (process {process.pid}): wait for it, or stop it with Ctrl-C")


def checkout_data() -> int:
    """Let DVC restore the outputs; return its exit code.

    DVC refuses if it would replace files that it has not stored, such as a network that was trained by hand. They are
    moved aside first.
    """
    result = dvc(Path(), "checkout", "--allow-missing")
    if _UNSAVED in result.stderr:
        folder = Path("data/set-aside", f"{time.time_ns()}")
        for line in result.stderr.partition(_UNSAVED)[2].splitlines()[1:]:
            if Path(line).is_file():
                target = folder / Path(line).relative_to(Path.cwd())
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(line, target)
        say(f"moved files that DVC has not stored to {folder}")
        result = dvc(Path(), "checkout", "--allow-missing")
    print(result.stderr, end="", file=sys.stderr)
    return result.returncode


def main() -> int:
    """Go back, or check; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether HEAD is detached or DVC at work")
    only_check, branch = parser.parse_args().check, branch_left()
    if only_check:
        refuse_if_dvc_works()
        if branch:
            refuse(f"a killed `dvc exp run` left HEAD detached from {branch}: `make restore` goes back to it")
        return 0
    refuse_to_lose()
    # What an experiment adds, such as the results of a new run, would be in the way of its branch.
    if Path("reports").is_dir():
        git("add", "--all", "reports")
    if Path("params.yaml").exists():
        Path("params.yaml").touch()  # Git may not see that DVC changed it within a second, often to the same size
    if changed := git("diff", "--name-only", "HEAD").splitlines():
        git(*_IDENTITY, "stash", "push", "--quiet", "--message", "set aside by make restore")
        names = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
        say(f"set aside: {names}; `git stash show --patch` shows these changes, `git stash pop` restores them")
    if branch:
        git("checkout", "--quiet", branch)
    git("update-ref", "-d", _RUNNING)
    say(f"back at {git('log', '-1', '--format=%h %s')}, on {git('branch', '--show-current') or 'no branch'}")
    code = checkout_data()
    if code == 0 and (missing := missing_outputs()):
        say(f"all files in Git are restored; {len(missing)} others are not in DVC's cache: `make repro` makes them")
    return code


if __name__ == "__main__":
    sys.exit(main())
