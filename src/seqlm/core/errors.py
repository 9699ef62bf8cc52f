"""The errors that a user sees.

Every error that is not a defect of this program is one of these. Its message is one line
that says what is wrong, where, and what to do. A stage that is started by hand ends with
its ``exit_code``.
"""

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NO_MEMORY = re.compile("can't allocate memory|out of memory")
"""In PyTorch's errors, on CPUs and on GPUs."""


class SeqlmError(Exception):
    """Base class of all errors that are meant for the user."""

    exit_code = 1


class ParamsError(SeqlmError):
    """A setting that is unknown, of the wrong type, or out of range."""

    exit_code = 2


class DataError(SeqlmError):
    """A corpus or a stored file that cannot be used as it is."""

    exit_code = 3


class DownloadError(SeqlmError):
    """No source of a corpus can be reached."""

    exit_code = 4


class MachineError(SeqlmError):
    """A limit of the machine: a missing device, a full disk, missing permissions, a cluster that
    does not answer."""

    exit_code = 5


class DivergenceError(SeqlmError):
    """Training produced a loss that is not finite."""

    exit_code = 6


class Interrupted(SeqlmError):
    """Ctrl-C; the exit code is the shell's, 128 + SIGINT."""

    exit_code = 130


@contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Import a package of an extra inside this context; ``what`` needs it.

    Raises MachineError, which names the extra, if the package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MachineError(
            f"{what} needs the package {error.name}: pip install 'seqlm[{extra}]'"
        ) from error


@contextmanager
def reporting(fail: Callable[[str, int], object], if_out_of_memory: str) -> Iterator[None]:
    """Pass every error that is not a defect of this program, as one line, to ``fail`` with the exit
    code, except an interruption.

    ``if_out_of_memory`` says what to do if memory is missing.
    """
    try:
        yield
    except Interrupted:
        raise
    except SeqlmError as error:
        fail(str(error), error.exit_code)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not _NO_MEMORY.search(str(error)):
            raise
        fail(f"out of memory: {if_out_of_memory}", MachineError.exit_code)
    except OSError as error:
        fail(_describe_os_error(error), MachineError.exit_code)


def _describe_os_error(error: OSError) -> str:
    """Return an error of the system as one line: where, what, and what to do."""
    where = f"{error.filename}: " if error.filename else ""
    advice = {
        errno.ENOSPC: ": free some space, then run again",
        errno.EACCES: ": check its permissions",
    }
    return f"{where}{error.strerror or error}{advice.get(error.errno or 0, '')}"
