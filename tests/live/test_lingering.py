"""Waiting awake: taken up where answers come, given up where they do not."""

from itertools import pairwise

from ordercast.live.lingering import Lingering


def taken(lingering: Lingering, occasions: int, *, answered: bool) -> list[int]:
    """The occasions that were taken, with the same end each time."""
    places = []
    for place in range(occasions):
        if lingering.is_worth_it():
            places.append(place)
            lingering.ended(answered=answered)
    return places


def test_it_goes_on_as_long_as_answers_come() -> None:
    assert taken(Lingering(cores=2), 50, answered=True) == list(range(50))


def test_it_is_given_up_where_they_do_not_but_for_a_try_now_and_then() -> None:
    places = taken(Lingering(cores=2), 20_000, answered=False)
    gaps = [after - before for before, after in pairwise(places)]
    assert gaps[0] == 1
    assert 0 < gaps.index(256) < 20, "a few misses are no reason to give it up"
    assert set(gaps[gaps.index(256) :]) == {256}


def test_every_other_answer_is_enough_to_go_on() -> None:
    lingering = Lingering(cores=2)
    for place in range(100):
        assert lingering.is_worth_it()
        lingering.ended(answered=bool(place % 2))


def test_answers_are_enough_to_begin_again() -> None:
    lingering = Lingering(cores=2)
    taken(lingering, 5_000, answered=False)
    while not lingering.is_worth_it():
        pass
    lingering.ended(answered=True)
    assert taken(lingering, 5, answered=True) == [0, 1, 2, 3, 4]


def test_on_one_core_it_would_keep_the_others_from_answering() -> None:
    assert taken(Lingering(cores=1), 100, answered=True) == []
