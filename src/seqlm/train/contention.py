"""Restarts a training when other work starts to use the processors.

Then PyTorch's threads should wait for each other differently, and only a new process can change how they wait.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from seqlm.core.cpu_contention import OtherLoad, re_exec, shorter_wait
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.trainer import Callback, Trainer

_SECONDS_BETWEEN_CHECKS = 2.0


class RestartRequested(Exception):
    """Other work uses the processors. A checkpoint is saved, from which a new process continues."""

    def __init__(self, wait: dict[str, str]) -> None:
        """``wait``: how the threads of the new process should wait for each other."""
        super().__init__(wait)
        self.wait = wait


def contention_monitor(checkpoint: Checkpoint, seconds: float = _SECONDS_BETWEEN_CHECKS) -> Callback:
    """Return a callback that raises RestartRequested if other work leaves the training's threads too little time.

    It checks every few ``seconds`` and saves the checkpoint before it raises.
    """
    other_load, last, previous_share = OtherLoad(), (time.monotonic(), time.process_time()), 1.0

    def check(trainer: Trainer) -> None:
        nonlocal last, previous_share
        num_threads, now = torch.get_num_threads(), (time.monotonic(), time.process_time())
        # Compiled loops adapt to other work themselves and leave PyTorch one thread, which waits for no other. Of
        # several processes, none may stop alone.
        if num_threads == 1 or trainer.ranks.size > 1 or trainer.is_done or now[0] - last[0] < seconds:
            return
        elapsed, worked = now[0] - last[0], now[1] - last[1]
        share = worked / (elapsed * num_threads) if other_load.is_high() else 1.0
        # Two checks in a row must see other work: a moment of it is not worth a restart.
        if wait := shorter_wait(max(share, previous_share)):
            checkpoint.save(*trainer.state())
            raise RestartRequested(wait)
        last, previous_share = now, share

    return check


@contextmanager
def restart_if_contended(log: Callable[[str], object]) -> Iterator[None]:
    """Continue a training that raises RestartRequested in this context in a restarted process, and log it."""
    try:
        yield
    except RestartRequested as request:
        log("other work uses the processors too: restarting with threads that wait awake for a shorter time")
        re_exec(request.wait)
