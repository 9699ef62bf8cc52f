"""Who does the tasks of counting: threads of this process, or the workers of a Dask cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from seqlm.core.errors import MachineError
from seqlm.core.files import replacing
from seqlm.core.threads import default_threads, imap
from seqlm.ngrams.counts.count_tables import IDS_AT_ONCE, Ids, IdStream

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
R = TypeVar("R")

_CONNECT_S = 10
"""Seconds to wait for a scheduler to answer, and for a worker to join it."""
_RETRIES = 2
"""How often a task is tried again after an error, such as one of a network's disk."""
_TASKS = "seqlm.ngrams.counts.shuffle"
"""The module of the tasks."""


class Workers(Protocol):
    """What does tasks."""

    @property
    def number(self) -> int:
        """Tasks that are done at the same time."""
        ...

    @property
    def memory(self) -> int:
        """Bytes that each task may take for arrays."""
        ...

    def readable(self, ids: IdStream, folder: Path) -> IdStream:
        """Return a stream from which every worker can read; ``folder`` is for a file if it needs one."""
        ...

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        """Return ``function(task)`` for each task, in order."""
        ...


class Threads:
    """Threads of this process."""

    def __init__(self, memory: int) -> None:
        """Take the bytes that all may take together."""
        self.number = default_threads()
        self.memory = memory // self.number

    def readable(self, ids: IdStream, folder: Path) -> IdStream:  # noqa: ARG002
        """Return the stream itself."""
        return ids

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        """Return ``function(task)`` for each task, in order."""
        return list(imap(function, tasks, self.number))


@dataclass(frozen=True)
class IdsInFile:
    """A stream of tokens in a file, read part by part. To send it to another machine sends only where it is."""

    path: Path
    offset: int
    """The byte at which it begins."""
    dtype: "np.dtype[Any]"
    length: int

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, positions: slice, /) -> Ids:
        start, stop, _ = positions.indices(self.length)
        offset = self.offset + start * self.dtype.itemsize
        return np.fromfile(self.path, self.dtype, max(stop - start, 0), offset=offset)


class DaskWorkers:
    """The workers of a Dask cluster.

    If one is lost, others do its tasks again. A result stays with the worker until it has been fetched, which happens
    at once, so that few are lost with it.
    """

    def __init__(self, client: "Client", memory: int) -> None:
        """Take the bytes that each process may take for arrays."""
        self._client = client
        threads = client.nthreads().values()
        self.number = sum(threads)
        self.memory = memory // max(threads)

    def readable(self, ids: IdStream, folder: Path) -> IdStream:
        """Return the file that the stream is mapped from, or a copy in ``folder``."""
        if isinstance(ids, np.memmap) and ids.filename:
            mapped = Path(ids.filename).resolve()
            if ids.offset + ids.nbytes == mapped.stat().st_size:  # not a part of what is mapped
                return IdsInFile(mapped, ids.offset, ids.dtype, len(ids))
        path, dtype = folder / "ids", ids[:1].dtype
        with replacing(path) as temporary, temporary.open("wb") as file:
            for start in range(0, len(ids), IDS_AT_ONCE):
                file.write(np.ascontiguousarray(ids[start : start + IDS_AT_ONCE]).data)
        return IdsInFile(path, 0, dtype, len(ids))

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        """Return ``function(task)`` for each task, in order. Raises MachineError if the cluster cannot do them."""
        from distributed import CancelledError, KilledWorker, as_completed

        futures = self._client.map(function, tasks, pure=False, retries=_RETRIES)
        numbers = {future.key: number for number, future in enumerate(futures)}
        results: dict[int, R] = {}
        try:
            for future, result in as_completed(futures, with_results=True, loop=self._client.loop):
                if isinstance(result, CancelledError):
                    raise result
                results[numbers[future.key]] = result
        except KilledWorker as error:
            raise MachineError(
                f"one task of counting has ended {error.allowed_failures + 1} workers: lower ngrams.memory, or give "
                "them more memory"
            ) from error
        except CancelledError as error:
            raise MachineError("the Dask scheduler has ended: start it, and run this again") from error
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            raise MachineError(
                f"{place}{error.strerror or error}, says a worker of the cluster: all must see this project's folder "
                "at the same path, and be able to write there"
            ) from error
        finally:
            self._client.cancel(futures)
        return [results[number] for number in range(len(tasks))]


@contextmanager
def cluster(scheduler: str, memory: int) -> Iterator[Workers]:
    """Give the workers of a Dask cluster, which need this package, and at most ``memory`` bytes each.

    Raises MachineError if the scheduler does not answer or has no worker.
    """
    from distributed import Client

    try:
        client = Client(scheduler, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MachineError(
            f"the Dask scheduler at {scheduler} does not answer: start it, or unset its address"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError as error:
            raise MachineError(f"the Dask scheduler at {scheduler} has no worker: start one") from error
        try:
            client.run(import_module, _TASKS)  # a worker that cannot read a task would end without a message
        except ImportError as error:
            raise MachineError(f"{error}, says a worker of the cluster: install the same version on all") from error
        yield DaskWorkers(client, memory)
