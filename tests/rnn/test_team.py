"""Threads that meet at barriers."""

import threading
import time

import numpy as np
import pytest
from numba import njit

from seqlm.rnn.compiled import team
from seqlm.rnn.compiled.team import Control, Team, await_round, barrier


@njit(nogil=True)
def meet(member: int, size: int, control: Control, work: tuple) -> None:
    """Write this member's number, wait, and then add up what all have written."""
    written, sums = work
    written[member] += member + 1
    barrier(control, size)
    for other in range(size):
        sums[member] += written[other]
    barrier(control, size)


@njit(nogil=True)
def serve(member: int, size: int, control: Control, work: tuple, done: int) -> int:
    turn = await_round(member, control, done)
    while turn > done:
        meet(member, size, control, work)
        done = turn
        turn = await_round(member, control, done)
    return turn


def test_every_member_sees_what_the_others_wrote_before_the_barrier() -> None:
    for size in (1, 2, 3):
        written, sums = np.zeros(size, np.int64), np.zeros(size, np.int64)
        with Team(size, serve, (written, sums)) as members:
            for _ in range(200):
                members.run()
        assert written.tolist() == [200 * (member + 1) for member in range(size)]
        # In round r every number is r times what it was in the first: 1 + ... + 200 = 20,100.
        assert sums.tolist() == [20_100 * size * (size + 1) // 2] * size


def test_a_member_that_fell_asleep_is_woken() -> None:
    written, sums = np.zeros(2, np.int64), np.zeros(2, np.int64)
    with Team(2, serve, (written, sums)) as members:
        for rounds in (1, 2, 3):
            members.run()
            assert written.tolist() == [rounds, 2 * rounds]
            deadline = time.monotonic() + 30
            while not members._control[team._ASLEEP + team._LINE]:
                assert time.monotonic() < deadline, "the member that has nothing to do stays awake"
                time.sleep(0.01)


@njit(nogil=True)
def fail(member: int, size: int, control: Control, _work: tuple, _done: int) -> int:
    if member == 1:
        raise ValueError("no part for me")
    barrier(control, size)
    return 1


def test_a_member_that_fails_does_not_leave_the_others_waiting() -> None:
    with Team(2, fail, (np.zeros(1),)) as members, pytest.raises(ValueError, match="no part for me"):
        members.run()


def test_a_team_that_stops_leaves_no_thread() -> None:
    before = threading.active_count()
    members = Team(3, serve, (np.zeros(3, np.int64), np.zeros(3, np.int64)))
    members.run()
    assert threading.active_count() == before + 2
    members.stop()
    assert threading.active_count() == before
