"""A sentence says what the numbers say: turn the numbers round and the sentence turns."""

from ordercast.evaluation.claims import follows, grows_like, needs_less, stays_below
from ordercast.evaluation.results import Axis, Estimate, Method, Point, Role, Series


def measured(name: str, values: dict[float, float | None], half: float = 0.0) -> Series:
    points = []
    for x, y in values.items():
        found = None if y is None else Estimate(y, y - half, y + half, 5, Method.STUDENT)
        points.append(Point(x, y, found, runs=5))
    return Series(name, f"the {name}", Role.MEASURED, tuple(points))


def said(values: dict[float, float]) -> Series:
    return Series("said", "the formula", Role.CORRECTED, tuple(Point(x, y) for x, y in values.items()))


def test_what_is_near_agrees_and_what_is_far_does_not() -> None:
    near = {"m": measured("m", {1: 1.04, 2: 2.0}), "said": said({1: 1, 2: 2})}
    far = {"m": measured("m", {1: 1.5, 2: 2.0}), "said": said({1: 1, 2: 2})}
    claim = follows("m", "said", within=0.05, otherwise="Because.")
    assert claim(near).agrees is True
    assert claim(near).sentence == "The m: agrees with the formula (largest difference +4.0 %, at x = 1)."
    assert claim(near, "n").sentence == "The m: agrees with the formula (largest difference +4.0 %, at n = 1)."
    assert claim(far).agrees is False
    assert claim(far).sentence == "The m: differs from the formula (0 to 50 % off). Because."


def test_what_has_the_reference_in_its_interval_agrees() -> None:
    claim = follows("m", "said", within=0.05)
    wide = {"m": measured("m", {1: 1.5}, half=0.6), "said": said({1: 1})}
    narrow = {"m": measured("m", {1: 1.5}, half=0.4), "said": said({1: 1})}
    assert claim(wide).agrees is True
    assert "within the 95 % interval everywhere" in claim(wide).sentence
    assert claim(narrow).agrees is False


def test_an_interval_as_wide_as_what_it_is_about_says_nothing() -> None:
    claim = follows("m", "said", within=0.05)
    vague = claim({"m": measured("m", {1: 98.5}, half=111), "said": said({1: 0.06})})
    assert vague.agrees is None
    told = "within the 95 % interval everywhere; largest difference 1,642 times, at x = 1"  # 98.5 / 0.06
    assert vague.sentence == f"The m: too few runs to compare with the formula ({told})."
    near = claim({"m": measured("m", {1: 1.02}, half=2), "said": said({1: 1})})
    assert near.agrees is True, "what is near agrees, however it was measured"


def test_much_more_is_told_in_times_and_on_which_side() -> None:
    claim = follows("m", "said", within=0.1)
    found = claim({"m": measured("m", {1: 12.0, 2: 40.0}), "said": said({1: 1, 2: 2})})
    assert found.sentence == "The m: differs from the formula (12 to 20 times, above it everywhere)."
    below = claim({"m": measured("m", {1: 0.5}), "said": said({1: 1})})
    assert below.sentence == "The m: differs from the formula (50 % off, below it everywhere)."


def test_nothing_measured_is_neither_agreement_nor_difference() -> None:
    series = {"m": measured("m", {1: None}), "said": said({1: 1})}
    for claim in (follows("m", "said", within=1), stays_below("m", "said"), needs_less("m", "said", what="time")):
        found = claim(series)
        assert found.agrees is None
        assert "nothing was measured" in found.sentence
    assert grows_like("m", 1, within=1, of="n")(series).agrees is None


def test_a_bound_is_kept_or_exceeded() -> None:
    claim = stays_below("m", "said", otherwise="It starves.")
    kept = claim({"m": measured("m", {1: 3, 2: 8}), "said": said({1: 10, 2: 10})})
    assert (kept.agrees, kept.sentence) == (True, "The m: stays below the formula, at most 80 % of it (at x = 2).")
    broken = claim({"m": measured("m", {1: 3, 2: 25}), "said": said({1: 10, 2: 10})})
    assert (broken.agrees, broken.sentence) == (False, "The m: exceeds the formula, 2.5 times at x = 2. It starves.")


def test_growth_is_told_with_its_interval() -> None:
    square = {"m": measured("m", {2: 4, 4: 16, 8: 64})}
    assert grows_like("m", 2, within=0.1, of="n")(square).agrees is True
    found = grows_like("m", 1, within=0.1, of="n", otherwise="Why.")(square)
    assert found.agrees is False
    assert found.sentence == "The m: grows like n^2.00 (2.00 to 2.00), not as O(n) says. Why."


def test_what_does_not_grow_is_told_without_signs_of_nothing() -> None:
    found = grows_like("m", 0, within=0.1, of="n")({"m": measured("m", {2: 5.001, 4: 5, 8: 5})})
    assert found.sentence == "The m: grows like n^0.00 (0.00 to 0.00), as O(1) says."


def test_what_is_equal_has_no_difference() -> None:
    claim = follows("m", "said", within=0.05)
    assert claim({"m": measured("m", {1: 2.0}), "said": said({1: 2})}).sentence.endswith("(no difference).")


def test_an_axis_is_named_by_its_symbol() -> None:
    assert Axis("nodes, n").symbol == "n"
    assert Axis("probability that a node loses a message, f").symbol == "f"
    assert Axis("messages by each node").symbol == "messages"


def test_less_is_less_everywhere() -> None:
    claim = needs_less("a", "b", what="time")
    assert claim({"a": measured("a", {1: 1, 2: 2}), "b": measured("b", {1: 3, 2: 4})}).agrees is True
    found = claim({"a": measured("a", {1: 1, 2: 5}), "b": measured("b", {1: 3, 2: 4})})
    assert (found.agrees, found.sentence) == (False, "The a: not less time than the b at x = 2 (1.25 times).")


def test_less_is_not_told_of_intervals_that_say_nothing() -> None:
    """98.5 ± 111 and 5.08 ± 18 may be either way round; so may 98.5 and 90, but not with narrow intervals."""
    claim = needs_less("a", "b", what="time")
    vague = claim({"a": measured("a", {1: 5.08}, half=18), "b": measured("b", {1: 98.5}, half=111)})
    assert (vague.agrees, vague.sentence) == (None, "The a: too few runs to compare its time with that of the b.")
    assert claim({"a": measured("a", {1: 5.08}, half=18), "b": measured("b", {1: 98.5}, half=20)}).agrees is True
    assert claim({"a": measured("a", {1: 90}, half=20), "b": measured("b", {1: 98.5}, half=20)}).agrees is True


def test_a_growth_that_may_be_any_is_not_told() -> None:
    """Its interval has 1 within it, and 0 and 2 as well."""
    claim = grows_like("m", 1, within=0.1, of="n")
    found = claim({"m": measured("m", {1: 1, 2: 30, 4: 0.5, 8: 20})})
    assert found.agrees is None
    assert "too few runs to say how" in found.sentence


def test_each_claim_says_what_it_asks() -> None:
    series = {"m": measured("m", {1: 1.0, 2: 2.0, 3: 3.0}), "said": said({1: 1, 2: 2, 3: 3})}
    asked = "each value within 5 % of the formula, or with it in its 95 % interval"
    assert follows("m", "said", within=0.05)(series).asked == asked
    assert "within 2.5 % of the formula" in follows("m", "said", within=0.025)(series).asked
    assert stays_below("m", "said")(series).asked == "each value at most the formula"
    assert grows_like("m", 1, within=0.1, of="n")(series).asked == (
        "an exponent within 0.1 of 1, or 1 in its 95 % interval"
    )
    assert needs_less("m", "said", what="time")(series, "n").asked == "less time than the formula at each n"
