"""Work that a network shares among threads, each of which computes one item."""

import threading

import pytest
import torch

from compiled_networks import network_settings, threads
from seqlm.rnn.framework import FrameworkRNN


def thread_of(number: int) -> tuple[int, int, bool]:
    return number, torch.get_num_threads(), threading.current_thread() is threading.main_thread()


def framework(device: str) -> FrameworkRNN:
    return FrameworkRNN(network_settings("rnn"), 9, 0).to(device)


def test_on_a_cpu_pytorch_s_threads_compute_one_item_each() -> None:
    with threads(3):
        found = list(framework("cpu").arrays.imap(thread_of, range(6)))
        assert torch.get_num_threads() == 3
    assert found == [(number, 1, False) for number in range(6)]


def test_on_other_devices_items_follow_one_another() -> None:
    with threads(3):
        found = list(framework("meta").arrays.imap(thread_of, range(3)))
    assert found == [(number, 3, True) for number in range(3)]


def test_a_failure_gives_pytorch_its_threads_back() -> None:
    with threads(2):
        with pytest.raises(ZeroDivisionError):
            list(framework("cpu").arrays.imap(lambda number: 1 // number, [1, 0]))
        assert torch.get_num_threads() == 2
