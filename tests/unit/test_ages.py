"""Ages: never older than what surely passed, never younger than what may have passed."""

from hypothesis import given
from hypothesis import strategies as st

from agent.records.ages import Ages, Instant

MS = st.integers(0, 10 * 24 * 3_600_000)
JUMPS = st.integers(-400 * 24 * 3_600_000, 400 * 24 * 3_600_000)
LOOKS = st.lists(
    st.one_of(
        st.tuples(st.just("passes"), MS, st.just(0)),
        st.tuples(st.just("is set"), st.just(0), JUMPS),
        st.tuples(st.just("is off"), MS, st.just(0)),
    ),
    max_size=12,
)


@given(LOOKS, st.booleans())
def test_nothing_is_older_than_it_can_be_and_jumps_count_for_nothing(
    steps: list[tuple[str, int, int]], named: bool
) -> None:
    """`named`: the platform says which start of the machine this is."""
    wall, up, boots, true = 1_796_000_000_000, 500, 0, 0
    ages = begun = Ages.begin(Instant(wall=wall, boot="b0" if named else "", up=up))
    restarts = False
    for what, ms, jump in steps:
        wall, true = wall + ms + jump, true + ms
        if what == "is off":
            boots, up, restarts = boots + 1, 0, True
        else:
            up += ms
        boot = f"b{boots}" if named else ""
        later = ages.until(Instant(wall=wall, boot=boot, up=up))
        assert later.least >= ages.least
        assert later.most >= later.least
        ages = later
    assert ages.least - begun.least <= true
    if not restarts:
        assert ages.least - begun.least == ages.most - begun.most == true


def test_only_the_wall_clock_knows_how_long_a_machine_was_off() -> None:
    day = 24 * 3_600_000
    ages = Ages.begin(Instant(wall=0, boot="a", up=7 * day))
    after = ages.until(Instant(wall=3 * day, boot="b", up=1_000))
    assert (after.least, after.most) == (1_000, 3 * day)
    # It was set back while it was off: what passed at least is what it is up for.
    back = ages.until(Instant(wall=-3 * day, boot="b", up=1_000))
    assert (back.least, back.most) == (1_000, 1_000)
