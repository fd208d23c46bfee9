"""What happens to an order, from the complaint to the refund, as somebody sees it who looks on."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest

ASKED = "Refund 20.00 EUR for order A-1042?"
OTHER = "Refund 20.00 EUR for order B-7?"
BROKEN = "The cup of A-1042 arrived broken."
REFUND = {"orderId": "A-1042", "amount": "20.00", "currency": "EUR"}
REFUNDED = "Refunded 20.00 EUR for A-1042."


def test_a_complaint_becomes_a_request_and_an_approval_a_refund(server, person):
    alice = person().opens()
    alice.asks(BROKEN)
    card = alice.card(ASKED)
    for said in ("Order id", "A-1042", "Amount", "20.00", "EUR", "You or bob may answer."):
        alice.sees(said, card)
    alice.sees(re.compile(r"^(10:00|9:\d\d) left$"), card)
    assert server.calls == []
    alice.answers("Approve", ASKED)
    alice.sees(REFUNDED)
    alice.sees("Done")
    alice.sees(re.compile(r"^Approved by alice at "), card)
    assert server.calls == [REFUND]


def test_what_the_agent_says_is_shown_while_it_is_at_work(server, person):
    server.in_agent.wanted = True
    alice = person().opens()
    alice.asks(BROKEN)
    alice.sees("I propose a refund.")
    alice.sees("At work")
    server.in_agent.released.set()
    alice.sees(alice.card(ASKED))


def test_a_denial_refunds_nothing(server, person):
    alice = person().opens()
    alice.asks(BROKEN)
    alice.answers("Deny", ASKED)
    alice.sees("Done")
    alice.sees(re.compile(r"^Denied by alice at "), alice.card(ASKED))
    assert server.calls == []


def test_each_request_of_a_run_is_answered_by_itself(server, person):
    alice = person().opens()
    alice.asks("A-1042 and B-7 arrived broken.")
    alice.answers("Approve", ASKED)
    alice.sees(re.compile(r"^Approved by alice at "), alice.card(ASKED))
    alice.sees("Waits for approval")
    assert server.calls == []
    alice.answers("Deny", OTHER)
    alice.sees("Done")
    assert server.calls == [REFUND]


def test_a_conversation_goes_on_after_a_run(person):
    alice = person().opens()
    alice.asks("Hello?")
    alice.sees("Which order is it about?")
    alice.sees("Done")
    alice.asks(BROKEN)
    alice.sees(alice.card(ASKED))
    alice.sees("Hello?")


def test_a_reload_at_every_step_finds_everything_again(server, person):
    server.in_agent.wanted = server.in_tool.wanted = True
    alice = person().opens()
    alice.asks(BROKEN)
    alice.sees("I propose a refund.")
    alice.reloads()
    alice.sees(BROKEN)
    alice.sees("At work")
    server.in_agent.released.set()
    alice.sees("Waits for approval")
    waiting = alice.words()
    assert waiting.count("I propose a refund.") == 1
    alice.reloads()
    alice.sees("Waits for approval")
    assert alice.words() == waiting
    alice.answers("Approve", ASKED)
    server.in_tool.wait()
    alice.reloads()
    alice.sees(re.compile(r"^Approved by alice at "), alice.card(ASKED))
    alice.sees("At work")
    server.in_tool.released.set()
    alice.sees("Done")
    done = alice.words()
    assert done.count(BROKEN) == 1
    alice.reloads()
    alice.sees("Done")
    assert alice.words() == done
    assert server.calls == [REFUND]


def test_a_second_tab_sees_the_same_at_every_step(server, person):
    server.in_agent.wanted = True
    alice, bob = person("alice").opens(), person("bob")
    alice.asks(BROKEN)
    alice.sees("I propose a refund.")
    bob.joins(alice)
    bob.sees("At work")
    server.in_agent.released.set()
    bob.sees("You or alice may answer.", bob.card(ASKED))
    bob.answers("Approve", ASKED)
    for each in (alice, bob):
        each.sees(REFUNDED)
        each.sees("Done")
        each.sees(re.compile(r"^Approved by bob at "), each.card(ASKED))
    assert alice.words() == bob.words()


def test_a_run_at_work_can_be_cancelled(server, person):
    server.in_agent.wanted = True
    alice = person().opens()
    alice.asks(BROKEN)
    alice.sees("I propose a refund.")
    alice.button("Cancel run").click()
    server.in_agent.released.set()
    alice.sees("Cancelled")
    alice.sees_no(alice.button("Cancel run"))
    alice.sees_no(alice.card(ASKED))


def test_a_run_that_waits_can_be_cancelled_and_takes_its_requests_along(server, person):
    alice = person().opens()
    alice.asks("A-1042 and B-7 arrived broken.")
    alice.sees(alice.card(OTHER))
    alice.button("Cancel run").click()
    for message in (ASKED, OTHER):
        alice.sees(re.compile(r"^Cancelled by alice at "), alice.card(message))
        alice.sees_no(alice.listed(message))
    alice.sees(alice.question)
    assert server.calls == []


def test_a_correction_denies_the_request_and_asks_anew(server, person):
    alice, bob = person("alice").opens(), person("bob")
    alice.asks(BROKEN)
    alice.answers("Correct", ASKED)
    alice.page.get_by_label("Amount").fill("15.00")
    alice.page.get_by_label("Why (optional)").fill("The saucer is whole.")
    alice.button("Deny and ask anew").click()
    anew = "Refund 15.00 EUR for order A-1042?"
    bob.joins(alice)
    bob.sees(
        re.compile(r"^Denied and corrected by alice at .*The saucer is whole\."), bob.card(ASKED)
    )
    bob.answers("Approve", anew)
    bob.sees("Refunded 15.00 EUR for A-1042.")
    assert server.calls == [{**REFUND, "amount": "15.00"}]


@pytest.mark.parametrize("amount", ["20.00", "much"])
def test_a_correction_that_is_none_is_refused_and_can_be_corrected(server, person, amount):
    alice = person().opens()
    alice.asks(BROKEN)
    alice.answers("Correct", ASKED)
    alice.page.get_by_label("Amount").fill(amount)
    alice.button("Deny and ask anew").click()
    alice.sees(re.compile("^The amount "), alice.card(ASKED))
    assert alice.page.get_by_label("Amount").input_value() == amount
    alice.button("Back").click()
    alice.answers("Approve", ASKED)
    alice.sees("Done")
    assert server.calls == [REFUND]


def test_the_list_holds_what_waits_in_every_conversation_oldest_expiry_first(server, person):
    alice, bob = person("alice").opens(), person("bob").opens()
    alice.asks(BROKEN)
    alice.sees(alice.card(ASKED))
    bob.asks("B-7 is late.")
    bob.sees(bob.card(OTHER))
    titles = bob.list.get_by_role("listitem").get_by_role("heading")
    bob.sees(bob.listed(ASKED))
    assert titles.all_inner_texts() == [ASKED, OTHER]


def test_an_approval_from_the_list_makes_the_refund_of_another_conversation(server, person):
    alice, bob = person("alice").opens(), person("bob").opens()
    alice.asks(BROKEN)
    bob.button("Approve", ASKED, bob.list).click()
    bob.sees_no(bob.listed(ASKED))
    bob.sees("Nothing waits for approval.", bob.list)
    alice.sees(REFUNDED)
    assert server.calls == [REFUND]


def test_a_request_in_the_list_leads_to_its_conversation(person):
    alice, bob = person("alice").opens(), person("bob").opens()
    alice.asks(BROKEN)
    bob.list.get_by_role("link", name=ASKED).click()
    bob.sees(BROKEN)
    bob.sees(bob.card(ASKED))


def test_whoever_may_not_answer_is_told_who_may_and_has_no_buttons(person):
    alice, mallory = person("alice").opens(), person("mallory")
    alice.asks(BROKEN)
    alice.sees(alice.card(ASKED))
    mallory.joins(alice)
    mallory.sees("Alice or bob may answer.", mallory.card(ASKED))
    assert mallory.card(ASKED).get_by_role("button").count() == 0


def test_whoever_may_not_cancel_is_told_so(person):
    alice, mallory = person("alice").opens(), person("mallory")
    alice.asks(BROKEN)
    alice.sees(alice.card(ASKED))
    mallory.joins(alice).button("Cancel run").click()
    mallory.sees("You may not decide about refunds.")
    mallory.sees("Waits for approval")


@pytest.mark.parametrize(
    "question", ["<img src=x onerror=alert(1)> A-1042", "<script>alert(1)</script> A-1042"]
)
def test_what_a_customer_writes_is_never_markup(person, question):
    alice = person().opens()
    alice.page.on("dialog", lambda dialog: alice.mistakes.append(dialog.message))
    alice.asks(question)
    alice.sees(question)
    alice.sees(alice.card(ASKED))
    assert alice.conversation.locator("img, script").count() == 0


def test_no_other_page_can_show_this_one_in_a_frame(server, person):
    mallory = person()
    mallory.page.set_content(f'<iframe src="{server.url}"></iframe>')
    assert mallory.page.frames[1].locator("main").count() == 0
    assert "frame-ancestors 'none'" in mallory.mistakes.pop()


def test_two_clicks_in_one_tab_send_one_answer(person):
    alice = person().opens()
    alice.asks(BROKEN)
    sent = []
    alice.page.on("request", lambda request: sent.append(urlsplit(request.url).path))
    alice.button("Approve", ASKED).dblclick()
    alice.sees("Done")
    assert sent.count("/answer") == 1


def test_a_server_that_is_gone_is_told_and_found_again(person):
    alice = person().opens()
    alice.asks(BROKEN)
    alice.sees(alice.card(ASKED))
    alice.page.context.set_offline(True)
    alice.sees("The server does not answer. This page keeps trying.", alice.page)
    alice.answers("Approve", ASKED)
    alice.sees("it is not known whether your answer has arrived", alice.card(ASKED))
    alice.page.context.set_offline(False)
    alice.answers("Approve", ASKED)
    alice.sees("Done")
    alice.sees_no(alice.page.get_by_text("The server does not answer.").filter(visible=True))


def test_the_page_of_whoever_one_chooses_to_be(person):
    alice = person().opens()
    alice.asks(BROKEN)
    alice.sees("You or bob may answer.", alice.card(ASKED))
    alice.page.get_by_label("You are").select_option("bob")
    alice.sees("You or alice may answer.", alice.card(ASKED))
    alice.answers("Approve", ASKED)
    alice.sees(re.compile(r"^Approved by bob at "), alice.card(ASKED))


def test_a_long_conversation_is_shown_from_its_end_and_back_to_its_beginning(server, person):
    alice = person().opens()
    [thread] = parse_qs(urlsplit(alice.page.url).query)["thread"]
    for number in range(52):
        message = {"id": f"m-{number}", "role": "user", "content": f"Question {number}."}
        server.post("/agent", {"threadId": thread, "runId": f"r-{number}", "messages": [message]})
    alice.sees("Question 51.")
    shown = alice.page.locator(".question")
    assert shown.first.inner_text().endswith("Question 2.")
    alice.button("Show earlier runs").click()
    alice.sees("Question 0.")
    assert shown.count() == 52
    alice.sees_no(alice.button("Show earlier runs"))


def test_a_question_brings_what_was_said_before_along_once(person):
    alice = person().opens()
    sent = []
    alice.page.on("request", lambda request: sent.append(request))
    for question in ("One?", "Two?", "Three?"):
        alice.asks(question)
        alice.sees("Done", alice.page.locator("#runs > li").filter(has_text=question))
    [*_, last] = [request for request in sent if request.url.endswith("/agent")]
    said = [message["content"] for message in last.post_data_json["messages"]]
    which = "Which order is it about?"
    assert said == ["One?", which, "Two?", which, "Three?"]


def test_a_question_that_was_not_taken_can_be_sent_again(person):
    alice = person().opens()
    alice.page.route("**/agent", lambda route: route.fulfill(status=409, body=json.dumps(CONFLICT)))
    alice.asks(BROKEN)
    alice.sees("This run id has been used for another input.")
    alice.sees(alice.page.locator("textarea:valid"))  # It is, once there is text in it.
    assert alice.question.input_value() == BROKEN


CONFLICT = {"code": "input_conflict", "message": "this run id has been used for another input"}


def test_a_new_conversation_has_an_address_of_its_own(person):
    alice = person().opens()
    before = alice.page.url
    alice.page.get_by_role("link", name="New conversation").click()
    alice.page.wait_for_url(lambda url: url != before and "thread=" in url)
    assert parse_qs(urlsplit(before).query).keys() == {"thread"}
