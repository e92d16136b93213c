"""Sharing tasks: every task once, at the same time, failures heard; with OpenMP's threads and with ours."""

import threading
import time

import pytest
import torch

from thinkalike.systems import teams


@pytest.fixture(params=["openmp", "threads"])
def four_threads(request, monkeypatch):
    if request.param == "threads":
        monkeypatch.setattr(teams, "_openmp", lambda: None)
    elif teams._openmp() is None:
        pytest.skip("torch carries no OpenMP library with the entry")
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("n_tasks", [1, 3, 4, 17])
def test_every_task_is_done_once(four_threads, n_tasks):
    done = []
    teams.share(lambda first, last: done.extend(range(first, last)), n_tasks)
    assert sorted(done) == list(range(n_tasks))


def test_the_parts_run_at_the_same_time(four_threads):
    together = threading.Barrier(4, timeout=30)
    members = set()

    def meet(first, last):
        members.add(threading.get_ident())
        together.wait()

    teams.share(meet, 4)
    assert len(members) == 4


def test_what_a_part_raises_is_raised_after_all_parts_ended(four_threads):
    ended = []

    def fail_first(first, last):
        if first == 0:
            raise ZeroDivisionError("the first part")
        time.sleep(0.05)
        ended.append(first)

    with pytest.raises(ZeroDivisionError, match="the first part"):
        teams.share(fail_first, 4)
    assert sorted(ended) == [1, 2, 3]


def test_when_several_parts_fail_one_is_heard(four_threads):
    with pytest.raises(ZeroDivisionError):
        teams.share(lambda first, last: 1 // 0, 40)


def test_a_team_that_never_comes_leaves_nothing_undone(monkeypatch):
    class NoTeam:
        def GOMP_parallel(self, *args):
            pass

    done = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(teams, "_openmp", NoTeam)
    teams.share(lambda first, last: done.extend(range(first, last)), 9)
    assert done == list(range(9))


@pytest.mark.parametrize(("n_tasks", "n_threads"), [(48, 2), (5, 2), (7, 8), (1000, 3)])
def test_parts_cover_all_and_shrink(n_tasks, n_threads):
    parts = teams._parts(n_tasks, n_threads)
    assert [task for first, last in parts for task in range(first, last)] == list(range(n_tasks))
    sizes = [last - first for first, last in parts]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] <= -(-n_tasks // n_threads)
    assert sizes[-1] == 1


def test_one_thread_needs_no_team(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(teams, "_openmp", lambda: pytest.fail("asked for a team"))
    done = []
    teams.share(lambda first, last: done.append((first, last)), 5)
    assert done == [(0, 5)]
