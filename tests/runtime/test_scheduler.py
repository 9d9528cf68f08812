"""The order of the queue: addresses and owners take turns, short runs pass long ones, forgotten
runs give way.
"""

from __future__ import annotations

from bandits.runtime.job import Job
from bandits.runtime.scheduler import MAX_PASSES, MAX_QUEUED, UNSEEN, Scheduler
from bandits.runtime.supervisor import Supervisor
from tests.support import experiment

LONG = 10_000_000


def queued(queue: Scheduler, owner: str = "", address: str = "", *, steps: int = 300) -> Job:
    job = Job(experiment("linucb", steps=steps), owner, address=address)
    queue.add_run(job)
    return job


def served(queue: Scheduler) -> list[Job]:
    found = []
    while queue.n_runs:
        first = min((*queue._runs, *queue._first), key=queue.position)
        job = queue.next(0, 0)
        # the position that a page shows
        assert job is first
        assert isinstance(job, Job)
        found.append(job)
    return found


def test_a_short_run_does_not_wait_behind_the_long_runs_of_another_address() -> None:
    queue = Scheduler()
    flood = [queued(queue, f"cookie {i}", "192.0.2.1", steps=LONG) for i in range(60)]
    own = queued(queue, "me", "192.0.2.2")
    long = queued(queue, "me", "192.0.2.2", steps=LONG)
    order = served(queue)
    assert order.index(own) == 0
    assert order.index(long) <= 2
    assert set(order) == {*flood, own, long}


def test_owners_at_one_address_take_turns() -> None:
    queue = Scheduler()
    many = [queued(queue, "eager", "192.0.2.1") for _ in range(4)]
    one, two = (queued(queue, owner, "192.0.2.1") for owner in ("patient", "shy"))
    assert served(queue) == [many[0], one, two, *many[1:]]


def test_short_runs_pass_a_long_one_only_a_few_times() -> None:
    queue = Scheduler()
    long = queued(queue, "long", steps=LONG)
    for _ in range(3 * MAX_PASSES):
        queued(queue, "short")
    assert served(queue).index(long) == MAX_PASSES


def test_runs_of_equal_rank_are_served_in_the_order_of_their_arrival() -> None:
    queue = Scheduler()
    jobs = [queued(queue) for _ in range(5)]
    begun = Job(experiment())
    queue.add_run(begun, first=True)
    assert served(queue) == [begun, *jobs]


def test_a_run_that_no_page_shows_comes_last_and_gives_way() -> None:
    supervisor = Supervisor(0, None)
    forgotten = [queued(supervisor.scheduler) for _ in range(2)]
    shown = [queued(supervisor.scheduler) for _ in range(MAX_QUEUED - 2)]
    assert not supervisor.make_room()
    for job, seconds in zip(forgotten, (1, 2), strict=True):
        job.seen -= UNSEEN + seconds
    assert supervisor.make_room()
    assert [job.status for job in forgotten] == ["queued", "stopped"]
    assert forgotten[1].error == "it gave way to other runs while no page showed it"
    assert served(supervisor.scheduler) == [*shown, forgotten[0]]
    supervisor.close()
