"""A training beside work that came after it: PyTorch's threads must wait otherwise, and only a new process's can."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from seqlm.core.cpu_contention import SHARED, OtherLoad, re_exec, shorter_wait
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.trainer import Trainer

_SECONDS_BETWEEN_LOOKS = 2.0


class RestartRequested(Exception):
    """Others want the processors. A checkpoint is saved, from which a new process goes on."""

    def __init__(self, wait: dict[str, str]) -> None:
        """``wait``: how the threads of the new process should wait for each other."""
        super().__init__(wait)
        self.wait = wait


class ContentionMonitor:
    """Ends a training whose threads wait too long for each other since others want the processors too."""

    def __init__(self, checkpoint: Checkpoint, seconds: float = _SECONDS_BETWEEN_LOOKS) -> None:
        """Look every few ``seconds`` from now on."""
        self._checkpoint, self._seconds = checkpoint, seconds
        self._neighbours, self._last = OtherLoad(), (time.monotonic(), time.process_time())
        self._got_before = 1.0

    def __call__(self, trainer: Trainer) -> None:
        """Look if it is time. Raises CrowdedError after the checkpoint is saved."""
        # Compiled loops mind others by themselves, and let PyTorch work with one thread, which waits for no other.
        # Of several processes none may leave alone.
        if torch.get_num_threads() == 1 or trainer.ranks.size > 1 or trainer.is_done:
            return
        if time.monotonic() - self._last[0] < self._seconds:
            return
        got, before = self._look(), self._got_before
        self._got_before = got
        # Two looks in turn must find others: what is gone after a moment is not worth a new beginning.
        if wait := shorter_wait(max(got, before)):
            self._checkpoint.save(*trainer.state())
            raise RestartRequested(wait)

    def _look(self) -> float:
        """Return the share that this process got of its threads' time, 1 where others took little, since the last."""
        now = time.monotonic(), time.process_time()
        elapsed, worked = (after - before for after, before in zip(now, self._last, strict=True))
        self._last = now
        return worked / (elapsed * torch.get_num_threads()) if self._neighbours.share() >= SHARED else 1.0


@contextmanager
def begun_again_if_crowded(log: Callable[[str], object]) -> Iterator[None]:
    """Where a training in here raises CrowdedError: go on with it in a process that begins anew, and ``say`` so."""
    try:
        yield
    except RestartRequested as crowded:
        log("other work wants the processors too: going on with threads that wait awake for a shorter time")
        re_exec(crowded.wait)
