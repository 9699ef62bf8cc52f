"""``python -m seqlm.train.torchrun``: torchrun, which says in one line why a training ended.

It takes torchrun's options. torchrun itself would print its own traceback and a summary of all processes.
"""

import logging
import os
import signal
import sys
from collections.abc import Iterable

from torch.distributed import DistError
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.elastic.rendezvous.api import RendezvousError
from torch.distributed.run import parse_args, run

from seqlm.core.errors import Interrupted, MachineError, ParamsError

QUIET = "SEQLM_TORCHRUN"
"""The environment variable that tells the processes to print no errors: this one does."""


def main(arguments: list[str] | None = None) -> int:
    """Run torchrun with the arguments, by default those of the command line; return the exit code."""
    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)
    os.environ[QUIET] = "1"
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as torchrun does, with a warning; `num_threads` replaces it
    try:
        run(parse_args(arguments))  # type: ignore[no-untyped-call]
    except ChildFailedError as error:
        return _fail(*explain(error.failures.values()))
    except (ValueError, AssertionError) as error:  # as torchrun refuses values of its options
        reason = " ".join(str(error).split()) or "the numbers of nodes and of processes must be at least 1"
        return _fail(f"torchrun: {reason}", ParamsError.exit_code)
    except (RendezvousError, DistError) as error:
        reason = " ".join(str(error.__cause__ or error).split()) or "the others did not come in time"
        return _fail(f"the machines cannot find each other: {reason}", MachineError.exit_code)
    except KeyboardInterrupt:  # while it waits for other machines
        return Interrupted.exit_code
    except SignalException as stop:  # the first process has said where it was interrupted
        return Interrupted.exit_code if stop.sigval == signal.SIGINT else 128 + stop.sigval
    return 0


def _fail(message: str, code: int) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code


def explain(failures: Iterable[ProcessFailure]) -> tuple[str, int]:
    """Return why a training ended, and its exit code."""
    # torchrun ends the others by SIGTERM.
    first = min(failures, key=lambda failure: (failure.exitcode == -signal.SIGTERM, failure.timestamp))
    if first.exitcode < 0:
        reason = f"training process {first.local_rank} was ended by {first.signal_name()}"
        return f"{reason}: the same command continues from the last checkpoint", MachineError.exit_code
    if first.error_file_data.get("seqlm"):
        return str(first.message), first.exitcode
    return f"training process {first.local_rank} failed, see above", first.exitcode


if __name__ == "__main__":
    sys.exit(main())
