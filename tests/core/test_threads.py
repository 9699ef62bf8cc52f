"""Work shared by threads: results in order, few items at once, and one failure ends all."""

import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import CancelledError

import pytest

from seqlm.core.threads import for_each, imap, raise_if_cancelled


@pytest.mark.parametrize("num_threads", [1, 3])
def test_results_come_in_order(num_threads: int) -> None:
    def slowly(number: int) -> tuple[int, bool]:
        time.sleep(0.02 / (1 + number))  # the last would be ready first
        return number, threading.current_thread() is threading.main_thread()

    found = list(imap(slowly, range(6), num_threads))
    assert [number for number, _ in found] == [0, 1, 2, 3, 4, 5]
    assert {is_main for _, is_main in found} == {num_threads == 1}


def test_items_are_taken_as_they_are_needed() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    results = imap(abs, items(), 2)
    assert isinstance(results, Generator)
    assert next(results) == 0
    # Two threads have two items each, and one result was taken.
    assert len(taken) == 5
    results.close()
    assert len(taken) == 5


def test_when_one_call_fails_the_others_end() -> None:
    ended, begun, second_began = [], [], threading.Event()

    def work(number: int) -> None:
        begun.append(number)
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

    with pytest.raises(ValueError, match="the first"):
        list(imap(work, range(100), 2))
    assert set(begun) <= {0, 1, 2}
    assert 1 in ended
    raise_if_cancelled()  # elsewhere it does nothing


def test_an_action_is_called_for_each_item() -> None:
    seen: list[int] = []
    for_each(seen.append, ((number,) for number in range(20)))
    assert sorted(seen) == list(range(20))
    for_each(seen.append, [])
    with pytest.raises(ZeroDivisionError):
        for_each(lambda number: 1 // number, [(0,)])
