"""Work that a network shares among threads, each of which computes one item."""

import threading

import pytest
import torch

from compiled_networks import network_settings, threads
from seqlm.rnn.framework import FrameworkRNN


@pytest.mark.parametrize(("device", "num_threads", "in_main_thread"), [("cpu", 1, False), ("meta", 3, True)])
def test_only_on_a_cpu_do_threads_compute_one_item_each(device: str, num_threads: int, in_main_thread: bool) -> None:
    def compute(number: int) -> tuple[float, int, bool]:
        return 1 / number, torch.get_num_threads(), threading.current_thread() is threading.main_thread()

    imap = FrameworkRNN(network_settings("rnn"), 9, 0).to(device).arrays.imap
    with threads(3):
        found = list(imap(compute, range(1, 7)))
        assert found == [(1 / number, num_threads, in_main_thread) for number in range(1, 7)]
        assert torch.get_num_threads() == 3
        with pytest.raises(ZeroDivisionError):
            list(imap(compute, [1, 0]))
        assert torch.get_num_threads() == 3
