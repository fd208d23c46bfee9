"""By keyboard, by ear, on a phone and on a desk, in light and in the dark."""

import re
from datetime import timedelta

import pytest

ASKED = "Refund 20.00 EUR for order A-1042?"
BROKEN = "The cup of A-1042 arrived broken."
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 800}


def steps(server, person, **screen):
    """Go through the story, and stop wherever the page looks another way."""
    alice, bob = person("alice", **screen).opens(), person("bob", **screen)
    alice.sees(alice.question)
    yield "nothing is asked", alice
    server.in_agent.wanted = True
    alice.asks("The cup of A-1042 arrived broken, and B-7 is late.")
    alice.sees("I propose a refund.")
    yield "the run is at work", alice
    server.in_agent.released.set()
    alice.sees(alice.card(ASKED))
    yield "approval is asked", alice
    alice.answers("Correct", ASKED)
    yield "a correction is written", alice
    alice.button("Back").click()
    bob.joins(alice)
    bob.sees(bob.card(ASKED))
    bob.falls_asleep()
    alice.answers("Approve", ASKED)
    alice.sees(re.compile(r"^Approved by alice"))
    bob.answers("Deny", ASKED)
    bob.sees(re.compile(r"^It is decided already\."), bob.card(ASKED))
    yield "an answer is refused", bob
    bob.opens(bob.url)
    bob.sees(bob.list.get_by_role("listitem"))
    yield "another conversation waits", bob
    alice.answers("Deny", "Refund 20.00 EUR for order B-7?")
    alice.sees("Done")
    yield "all is done", alice
    alice.asks(BROKEN)
    alice.sees(alice.button("Approve", ASKED))
    server.clock.now += timedelta(minutes=11)
    alice.sees(alice.button("Close", ASKED))
    yield "a request has expired", alice


# The width of the screen decides nothing about colours, so two of the four are all there is.
@pytest.mark.parametrize(
    ("viewport", "scheme"), [(PHONE, "light"), (DESK, "dark")], ids=["phone-light", "desk-dark"]
)
def test_axe_finds_nothing_wrong_and_nothing_leaves_the_screen(
    server, person, axe, viewport, scheme
):
    found = {}
    for step, somebody in steps(server, person, viewport=viewport, scheme=scheme):
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        found[step] = (axe(somebody), somebody.page.evaluate(wide))
    assert found == dict.fromkeys(found, ([], 0))
    assert len(found) == 8


def test_the_whole_story_by_keyboard(server, person):
    alice = person().opens()
    keys = alice.page.keyboard
    for _ in range(5):  # Past the skip link, the navigation and who one is.
        keys.press("Tab")
        if alice.question.evaluate("it => it === document.activeElement"):
            break
    alice.has_focus_on(alice.question)
    keys.type(BROKEN)
    keys.press("Enter")
    card = alice.card(ASKED)
    alice.has_focus_on(card.get_by_role("heading", name=ASKED))
    for name in ("Approve", "Deny", "Correct"):
        keys.press("Tab")
        alice.has_focus_on(alice.button(name, ASKED, card))
    keys.press("Enter")
    alice.has_focus_on(card.get_by_label("Amount"))
    keys.type("5.00")
    keys.press("Escape")
    alice.has_focus_on(alice.button("Correct", ASKED, card))
    keys.press("Shift+Tab")
    keys.press("Shift+Tab")
    keys.press("Space")
    alice.sees("Done")
    alice.has_focus_on(card.get_by_role("heading", name=ASKED))
    assert len(server.calls) == 1


def test_the_skip_link_comes_first_and_leads_to_the_conversation(person):
    alice = person().opens()
    alice.page.keyboard.press("Tab")
    alice.has_focus_on(alice.page.get_by_role("link", name="Skip to the conversation"))
    alice.page.keyboard.press("Enter")
    alice.has_focus_on(alice.conversation)


def test_an_answer_from_the_list_leaves_the_focus_in_the_list(person):
    alice, bob = person("alice").opens(), person("bob").opens()
    alice.asks(BROKEN)
    approve = bob.button("Approve", ASKED, bob.list)
    approve.focus()
    bob.page.keyboard.press("Enter")
    bob.has_focus_on(bob.list.get_by_role("heading", name="Waiting for approval"))


def test_a_redrawn_page_keeps_the_focus_and_what_is_being_written(server, person):
    alice, bob = person("alice").opens(), person("bob")
    alice.asks("A-1042 and B-7 arrived broken.")
    alice.answers("Correct", ASKED)
    amount = alice.card(ASKED).get_by_label("Amount")
    amount.fill("15")
    field = amount.element_handle()
    bob.joins(alice)
    bob.answers("Deny", "Refund 20.00 EUR for order B-7?")
    alice.sees(re.compile(r"^Denied by bob"))
    alice.has_focus_on(amount)
    assert field.evaluate("it => it.isConnected && it.value") == "15"


def test_a_screen_reader_is_told_what_others_do_and_not_what_a_reload_finds_again(person):
    alice, bob = person("alice").opens(), person("bob").opens()
    bob.sees("Nothing waits for approval.", bob.list)
    alice.asks(BROKEN)
    bob.hears(f"Approval needed: {ASKED}")
    bob.joins(alice)
    bob.sees(bob.card(ASKED))
    assert bob.page.get_by_role("status").inner_text() == ""
    alice.answers("Approve", ASKED)
    bob.hears("Refunded 20.00 EUR for A-1042.")


def test_the_number_that_waits_is_in_the_title(person):
    alice = person().opens()
    alice.asks(BROKEN)
    alice.sees(alice.card(ASKED))
    assert alice.page.title() == "(1) Refund desk"
