"""Who may move a request, and when: a dead worker's job returns, a live one's does not."""

import threading
from datetime import timedelta

import pytest
from pydantic import ValidationError

from queue_factory import START, make_request
from truegap.errors import UserError
from truegap.leaderboard import Limits, LocalStore
from truegap.leaderboard.lease import Lease, claim, claimable, claimed, failed, finished, returned
from truegap.leaderboard.request import stamp

LIMITS = Limits(lease=900, patience=120, attempts=3, rest=60)


def at(seconds):
    return START + timedelta(seconds=seconds)


class Clock:
    """A time that a test sets."""

    def __init__(self):
        self.moment = START

    def __call__(self):
        return self.moment


@pytest.fixture
def store(tmp_path):
    store = LocalStore(tmp_path / "store")
    store.put_request(make_request(), None)
    return store


def test_a_request_goes_to_one_worker_of_many(store):
    taken, together = [], threading.Barrier(8)

    def take(number):
        together.wait()
        taken.append(claim(store, f"worker-{number}", LIMITS, clock=Clock()))

    workers = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    (winner,) = [each for each in taken if each is not None]
    assert store.requests() == [winner]
    assert (winner.state, winner.attempts) == ("RUNNING", 1)


def test_the_oldest_request_comes_first_and_a_key_chooses_one(store):
    late = make_request("org/late", submitted=stamp(at(5)))
    early = make_request("org/early", submitted=stamp(at(-5)))
    for each in (late, early):
        store.put_request(each, None)
    assert claim(store, "w", LIMITS, key=late.key, clock=Clock()).model == "org/late"
    assert [claim(store, "w", LIMITS, clock=Clock()).model for _ in range(2)] == ["org/early", "org/model"]
    assert claim(store, "w", LIMITS, clock=Clock()) is None


def test_a_dead_workers_request_returns_when_its_lease_is_over(store):
    clock = Clock()
    claim(store, "dead", LIMITS, clock=clock)
    clock.moment = at(900 + 119)
    assert claim(store, "next", LIMITS, clock=clock) is None
    clock.moment = at(900 + 121)
    again = claim(store, "next", LIMITS, clock=clock)
    assert (again.worker, again.attempts) == ("next", 2)


def test_too_many_deaths_are_a_failure_with_its_reason(store):
    clock = Clock()
    for attempt in range(1, 4):
        assert claim(store, f"dead-{attempt}", LIMITS, clock=clock).attempts == attempt
        clock.moment += timedelta(seconds=1200)
    assert claim(store, "next", LIMITS, clock=clock) is None
    (held,) = store.requests()
    assert (held.state, held.attempts, held.lease_until) == ("FAILED", 3, None)
    assert "3 workers did not finish it" in held.reason
    assert claim(store, "next", LIMITS, clock=clock) is None


def test_a_lease_that_ends_later_than_any_worker_would_write_does_not_count():
    stolen = make_request(state="RUNNING", worker="w", attempts=1, lease_until=stamp(at(10 * 365 * 86400)))
    assert claimable(stolen, START, LIMITS)
    ahead = make_request(state="RUNNING", worker="w", attempts=1, lease_until=stamp(at(900 + 119)))
    assert not claimable(ahead, START, LIMITS)


def test_clocks_may_differ_by_the_patience():
    running = claimed(make_request(), "w", START, LIMITS)
    for skew in (-1000, 1019):
        assert not claimable(running, at(skew), Limits(lease=900, patience=1000))
    assert claimable(running, at(1021), LIMITS)


def test_a_heartbeat_keeps_the_request(store):
    clock = Clock()
    with Lease(store, claim(store, "w", LIMITS, clock=clock), LIMITS, clock) as lease:
        clock.moment = at(800)
        lease.renew()
        clock.moment = at(1500)
        assert claim(store, "thief", LIMITS, clock=clock) is None
        assert lease.close(lambda held: finished(held, "ab12", clock()))
    (held,) = store.requests()
    assert (held.state, held.run_id, held.lease_until, held.worker) == ("FINISHED", "ab12", None, "w")


def test_the_heartbeat_beats_by_itself(store):
    quick = Limits(lease=0.3, patience=120)
    with Lease(store, claim(store, "w", quick), quick) as lease:
        first, changed = lease.request.lease_until, threading.Event()
        for _ in range(6000):
            if lease.request.lease_until != first:
                break
            changed.wait(0.01)
        assert store.requests()[0].lease_until != first


def test_who_lost_a_request_learns_of_it_and_changes_nothing(store):
    slow, quick = Clock(), Clock()
    with Lease(store, claim(store, "slow", LIMITS, clock=slow), LIMITS, slow) as lease:
        quick.moment = at(5000)
        taken = claim(store, "quick", LIMITS, clock=quick)
        lease.renew()
        assert lease.lost.is_set()
        assert not lease.close(lambda held: finished(held, "ab12", slow()))
    assert store.requests() == [taken]
    with Lease(store, taken, LIMITS, quick) as other:
        store.put_request(failed(taken, "an administrator's hand", START), taken)
        assert not other.close(lambda held: finished(held, "ab12", quick()))
    assert store.requests()[0].state == "FAILED"


def test_a_store_out_of_reach_is_borne_for_one_lease(store, monkeypatch):
    clock = Clock()

    def unreachable(*_):
        raise UserError("the Hub cannot be reached")

    with Lease(store, claim(store, "w", LIMITS, clock=clock), LIMITS, clock) as lease:
        monkeypatch.setattr(store, "put_request", unreachable)
        lease.renew()
        assert not lease.lost.is_set()
        clock.moment = at(901)
        lease.renew()
        assert lease.lost.is_set()


def _deaf(store, monkeypatch):
    """Every write arrives, and its answer is lost."""
    write = store.put_request

    def put(request, expected):
        done = write(request, expected)
        if done:
            raise UserError("the connection broke")
        return done

    monkeypatch.setattr(store, "put_request", put)


def test_a_write_whose_answer_was_lost_is_still_ours(store, monkeypatch):
    clock = Clock()
    with Lease(store, claim(store, "w", LIMITS, clock=clock), LIMITS, clock) as lease:
        _deaf(store, monkeypatch)
        clock.moment = at(300)
        lease.renew()
        monkeypatch.undo()
        clock.moment = at(600)
        lease.renew()
        assert not lease.lost.is_set()
        assert store.requests() == [lease.request]
        _deaf(store, monkeypatch)
        with pytest.raises(UserError, match="broke"):
            lease.close(lambda held: finished(held, "ab12", clock()))
        monkeypatch.undo()
        clock.moment = at(700)
        lease.renew()
        assert lease.close(lambda held: finished(held, "ab12", clock()))
    assert store.requests() == [lease.request]
    assert lease.request.run_id == "ab12"


def test_a_heartbeat_goes_on_while_the_end_cannot_be_written(store, monkeypatch):
    def unreachable(*_):
        raise UserError("the Hub cannot be reached")

    clock = Clock()
    with Lease(store, claim(store, "w", LIMITS, clock=clock), LIMITS, clock) as lease:
        monkeypatch.setattr(store, "put_request", unreachable)
        with pytest.raises(UserError, match="reached"):
            lease.close(lambda held: finished(held, "ab12", clock()))
        monkeypatch.undo()
        before, clock.moment = lease.request.lease_until, at(300)
        lease.renew()
        assert lease.request.lease_until > before
        assert lease.close(lambda held: finished(held, "ab12", clock()))
    assert store.requests()[0].state == "FINISHED"


def test_attempts_that_broke_off_are_counted_and_rested_from():
    request = make_request()
    for attempt in (1, 2, 3):
        request = returned(claimed(request, "w", START, LIMITS), "no memory", START, LIMITS)
        assert request.attempts == attempt
        if request.state == "PENDING":
            assert not claimable(request, at(60 * attempt - 1), LIMITS)
            assert claimable(request, at(60 * attempt), LIMITS)
    assert (request.state, request.reason) == ("FAILED", "no memory (3 attempts)")


def test_a_worker_that_is_asked_to_stop_gives_the_attempt_back():
    back = returned(claimed(make_request(), "w", START, LIMITS), "stopped", START, LIMITS, refund=True)
    assert (back.state, back.attempts, back.worker) == ("PENDING", 0, None)
    assert claimable(back, START, LIMITS)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "../../etc/passwd"},
        {"model": "org/../model"},
        {"model": "/srv/../etc", "revision": f"sha256:{'a' * 64}"},
        {"model": "-o/option"},
        {"revision": "main"},
        {"revision": "../../x"},
        {"benchmark": "/data/../../etc"},
        {"protocol": "--sample-id"},
        {"profile": "huge"},
        {"user": "../ada"},
        {"note": "line\nline"},
        {"note": "\u202egnp"},
        {"note": "x" * 281},
        {"reason": "\x1b[31mred"},
        {"state": "DONE"},
        {"state": "RUNNING"},
        {"lease_until": "2026-01-01T00:00:00"},
        {"attempts": -1},
        {"run_id": "../x"},
        {"surprise": 1},
        {"format_version": 2},
    ],
)
def test_a_record_that_somebody_made_up_is_refused(change):
    with pytest.raises(ValidationError):
        make_request(**change)


def test_the_key_is_what_is_asked_and_not_who_asks():
    request = make_request()
    assert make_request(user="eve", note="mine").key == request.key
    others = [make_request("org/other"), make_request(revision="d" * 40), make_request(profile="full")]
    assert len({request.key, *(each.key for each in others)}) == 4
