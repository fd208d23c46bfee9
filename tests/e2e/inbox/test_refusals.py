"""A second click, a late one and a stale one: nothing happens, and it is said why, in words."""

import re
from datetime import timedelta

import pytest

ASKED = "Refund 20.00 EUR for order A-1042?"
BROKEN = "The cup of A-1042 arrived broken."


@pytest.fixture
def both(person):
    """Return two people who have the same open request before them."""
    alice, bob = person("alice").opens(), person("bob")
    alice.asks(BROKEN)
    alice.sees(alice.card(ASKED))
    bob.joins(alice)
    bob.sees(bob.card(ASKED))
    return alice, bob


@pytest.mark.parametrize("second", ["Deny", "Approve"])
def test_a_second_click_finds_the_first_one_standing(server, both, second):
    alice, bob = both
    bob.falls_asleep()
    alice.answers("Approve", ASKED)
    alice.sees("Done")
    bob.answers(second, ASKED)
    refused = r"^It is decided already\. Approved by alice at \S+ That stands\. Your answer changed"
    bob.sees(re.compile(refused), bob.card(ASKED))
    bob.hears("It is decided already.")
    assert len(server.calls) == 1


def test_of_two_tabs_that_race_one_wins_and_the_other_is_told(server, both):
    alice, bob = both
    for person in both:
        person.falls_asleep()
    for person, name in ((alice, "Approve"), (bob, "Deny")):
        button = person.button(name, ASKED, person.card(ASKED))
        # Long enough for both to be told before either does it.
        button.evaluate("button => void setTimeout(() => button.click(), 1000)")
    decided = re.compile(r"^(Approved by alice|Denied by bob) at ")
    outcomes = []
    for person in both:
        person.sees(decided, person.card(ASKED))
        outcomes.append(person.card(ASKED).get_by_text(decided).inner_text())
        person.wakes()
        person.sees("Done")
    assert outcomes[0] == outcomes[1]
    has_alice_won = outcomes[0].startswith("Approved")
    winner, loser = (alice, bob) if has_alice_won else (bob, alice)
    loser.sees("It is decided already.", loser.card(ASKED))
    assert winner.card(ASKED).get_by_text("It is decided already.").count() == 0
    assert len(server.calls) == has_alice_won


def test_a_late_click_finds_the_request_expired(server, both):
    alice, _ = both
    alice.falls_asleep()
    server.clock.now += timedelta(minutes=10)
    alice.answers("Approve", ASKED)
    alice.sees(
        re.compile(r"^Too late: this expired at \S+ and can only be closed\."), alice.card(ASKED)
    )
    assert server.calls == []


def test_an_expired_request_can_only_be_closed(server, both):
    alice, _ = both
    server.clock.now += timedelta(minutes=10)
    alice.sees(re.compile(r"^Expired at \S+ It can only be closed\.$"), alice.card(ASKED))
    assert alice.card(ASKED).get_by_role("button").all_inner_texts() == ["Close"]
    alice.answers("Close", ASKED)
    alice.sees("Done")
    alice.sees(re.compile(r"^Cancelled by alice at "), alice.card(ASKED))
    assert server.calls == []


def test_the_last_minute_is_shown_as_such(server, both):
    alice, _ = both
    server.clock.now += timedelta(minutes=9, seconds=5)
    alice.sees(re.compile(r"^0:5\d left$"), alice.card(ASKED))
    alice.sees(alice.card(ASKED).locator("[data-urgency=soon]"))


def test_a_stale_click_finds_the_request_withdrawn(server, both):
    alice, bob = both
    alice.falls_asleep()
    bob.button("Cancel run").click()
    bob.sees(re.compile(r"^Cancelled by bob at "), bob.card(ASKED))
    alice.answers("Approve", ASKED)
    alice.sees(re.compile(r"^Nothing is left to answer\. Cancelled by bob at "), alice.card(ASKED))
    assert server.calls == []


def test_a_stale_click_finds_the_request_corrected(server, both):
    alice, bob = both
    alice.falls_asleep()
    bob.answers("Correct", ASKED)
    bob.page.get_by_label("Amount").fill("15.00")
    bob.button("Deny and ask anew").click()
    bob.sees(bob.card("Refund 15.00 EUR for order A-1042?"))
    alice.answers("Approve", ASKED)
    alice.sees(
        re.compile(r"^It is decided already\. Denied and corrected by bob at "), alice.card(ASKED)
    )
    alice.wakes()
    alice.sees(alice.card("Refund 15.00 EUR for order A-1042?"))
    assert server.calls == []


def test_a_stale_click_in_the_list_is_told_there(server, person):
    alice, bob = person("alice").opens(), person("bob").opens()
    alice.asks(BROKEN)
    bob.sees(bob.listed(ASKED))
    bob.falls_asleep()
    alice.answers("Deny", ASKED)
    alice.sees("Done")
    bob.button("Approve", ASKED, bob.list).click()
    bob.sees(re.compile(rf"^{re.escape(ASKED)} It is decided already\. Denied by alice"), bob.list)
    assert server.calls == []


def test_whoever_lost_the_right_since_is_refused(server, both, monkeypatch):
    alice, _ = both
    alice.falls_asleep()
    monkeypatch.setattr("agent.REVIEWERS", ("bob",))
    alice.answers("Approve", ASKED)
    alice.sees("You may not decide about refunds.", alice.card(ASKED))
    assert server.calls == []
