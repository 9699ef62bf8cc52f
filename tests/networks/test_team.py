"""Threads that meet at barriers."""

import threading
import time
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llvmlite import binding
from numba import njit

from seqlm.networks.compiled.team import SLEEP, YIELD, Member, Team, barrier, share, split_rows, wait_for_task
from seqlm.networks.compiled.tiles import ROWS
from workspace import wait_until


@njit(nogil=True)
def meet(member: Member, work: tuple) -> None:
    """Write this thread's number, wait, and then add up what all have written."""
    (written, sums), thread = work, member.thread
    written[thread] += thread + 1
    barrier(member)
    for other in range(member.num_threads):
        sums[thread] += written[other]
    barrier(member)


@njit(nogil=True)
def serve(member: Member, work: tuple) -> None:
    number = 1
    while wait_for_task(member, number):
        meet(member, work)
        number += 1


def test_every_member_sees_what_the_others_wrote_before_the_barrier_and_no_thread_is_left() -> None:
    before = threading.active_count()
    for size in (1, 2, 3):
        written, sums = np.zeros(size, np.int64), np.zeros(size, np.int64)
        with closing(Team(size, serve, (written, sums))) as team:
            for _ in range(200):
                team.run()
            assert threading.active_count() == before + size - 1
        assert threading.active_count() == before
        assert written.tolist() == [200 * (thread + 1) for thread in range(size)]
        # In task r every number is r times what it was in the first: 1 + ... + 200 = 20,100.
        assert sums.tolist() == [20_100 * size * (size + 1) // 2] * size


def test_members_without_work_nap_longer_until_the_next_task() -> None:
    def share_of_a_processor() -> float:
        begin = time.process_time()
        time.sleep(0.2)
        return (time.process_time() - begin) / 0.2

    written, sums = np.zeros(2, np.int64), np.zeros(2, np.int64)
    with closing(Team(2, serve, (written, sums))) as team:
        for tasks in (1, 2, 3):
            team.run()
            assert written.tolist() == [tasks, 2 * tasks]
            wait_until(lambda: share_of_a_processor() <= 0.02, 30)


@njit(nogil=True)
def fail(member: Member, _work: tuple) -> None:
    if member.thread == 1:
        raise ValueError("no part for me")
    barrier(member)


def test_a_member_that_fails_does_not_leave_the_others_waiting() -> None:
    with closing(Team(2, fail, (np.zeros(1),))) as team, pytest.raises(ValueError, match="no part for me"):
        team.run()


def test_threads_nap_with_a_function_of_their_system() -> None:
    assert all(map(binding.address_of_symbol, (SLEEP, YIELD)))


@given(count=st.integers(0, 200), step=st.sampled_from([1, ROWS]), size=st.integers(1, 9))
def test_members_share_everything_in_whole_steps(count: int, step: int, size: int) -> None:
    parts = [share.py_func(count, step, Member(thread, size, np.zeros(1, np.int64))) for thread in range(size)]
    assert [n for first, last in parts for n in range(first, last)] == list(range(count))
    assert all(first % step == 0 or first == last for first, last in parts)


@given(num_rows=st.integers(1, 200), num_threads=st.integers(1, 9))
def test_threads_get_whole_tiles(num_rows: int, num_threads: int) -> None:
    parts = split_rows(num_rows, num_threads)
    assert [n for first, last in parts for n in range(first, last)] == list(range(num_rows))
    assert len(parts) <= num_threads
    assert all(last - first >= ROWS for first, last in parts) or len(parts) == 1
