"""Work in threads of its own: in order, and one failure ends all."""

import threading
import time
from concurrent.futures import CancelledError

import pytest
import torch

from compiled_networks import threads
from seqlm.rnn.threads import map_in_threads, raise_if_cancelled, threads_for


def slowly(number: int) -> tuple[int, int, str]:
    time.sleep(0.05 / (1 + number))  # the last would be ready first
    return number, torch.get_num_threads(), threading.current_thread().name


@pytest.mark.parametrize("num_threads", [1, 3])
def test_results_come_in_order_from_threads_that_have_no_others(num_threads: int) -> None:
    with threads(2):
        found = list(map_in_threads(slowly, range(6), num_threads))
        assert torch.get_num_threads() == 2
    assert [number for number, _, _ in found] == [0, 1, 2, 3, 4, 5]
    assert {inside for _, inside, _ in found} == {2 if num_threads == 1 else 1}
    names = {name for _, _, name in found}
    assert (names == {threading.current_thread().name}) == (num_threads == 1)


def test_when_one_fails_the_others_end() -> None:
    ended, second_began = [], threading.Event()

    def work(number: int) -> None:
        if number == 0:
            second_began.wait(5)
            raise ValueError("the first")
        second_began.set()
        try:
            for _ in range(1000):  # ten seconds
                time.sleep(0.01)
                raise_if_cancelled()
        except CancelledError:
            ended.append(number)
            raise

    begin = time.monotonic()
    with threads(2), pytest.raises(ValueError, match="the first"):
        list(map_in_threads(work, range(3), 2))
    assert time.monotonic() - begin < 5
    assert set(ended) <= {1, 2}
    assert 1 in ended
    assert torch.get_num_threads() == 1
    raise_if_cancelled()  # elsewhere it does nothing


def test_on_a_cpu_there_are_as_many_threads_as_pytorch_has() -> None:
    with threads(3):
        assert threads_for(torch.device("cpu")) == 3
        assert threads_for(torch.device("meta")) == 1
