"""People before their screens: each is a Chromium context of its own, on the page of the server."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

AXE = Path(__file__).parent.parent / "node_modules" / "axe-core" / "axe.min.js"

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 800}

# How long something may take to appear, in milliseconds: it never does, on a good day.
PATIENCE = 20_000

SWITCHES = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
]

# The page looks at the server five times as often as it would, so that the tests need not wait.
HURRY = "const { setTimeout } = window; window.setTimeout = (f, ms) => setTimeout(f, ms / 5);"

# A tab in the background asks the server nothing, so what it shows grows old.
FALL_ASLEEP = "Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })"
WAKE = "delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))"


class Person:
    """Somebody with the page open. What is on it is found by what a screen reader calls it."""

    def __init__(self, page, url: str) -> None:
        self.page = page
        self.url = url
        self.mistakes: list[str] = []
        page.on("pageerror", lambda error: self.mistakes.append(str(error)))
        page.on("console", self._note)

    def _note(self, message) -> None:
        # Chromium itself logs each refusal over HTTP, and these are what the tests are about.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.mistakes.append(message.text)

    def opens(self, address: str = "") -> "Person":
        self.page.goto(address or self.url)
        return self

    def joins(self, other: "Person") -> "Person":
        """Open the conversation that somebody else has open, and see that it is there."""
        self.opens(other.page.url)
        self.sees(self.page.locator("#runs > li"))
        return self

    def reloads(self) -> None:
        self.page.reload()
        self.sees(self.page.locator("#runs > li"))

    @property
    def question(self):
        return self.page.get_by_label("What is wrong with the order?")

    @property
    def conversation(self):
        return self.page.get_by_role("main")

    @property
    def list(self):
        return self.page.get_by_role("complementary", name=re.compile("Waiting for approval"))

    def card(self, message: str):
        """Return the request in the conversation that asks this."""
        return self.conversation.get_by_role("article", name=message, exact=True)

    def listed(self, message: str):
        """Return the request in the list that asks this."""
        return self.list.get_by_role("listitem").filter(has_text=message)

    def button(self, name: str, message: str = "", place=None):
        """Return the button of this name, or that of a request."""
        name = f"{name}: {message}" if message else name
        return (place or self.page).get_by_role("button", name=name, exact=True)

    def asks(self, question: str) -> None:
        self.question.fill(question)
        self.button("Send").click()

    def answers(self, name: str, message: str) -> None:
        """Press a button of a request in the conversation."""
        self.button(name, message, self.card(message)).click()

    def sees(self, what, where=None) -> None:
        """Wait until a text, or what a locator finds, is on the screen."""
        if isinstance(what, (str, re.Pattern)):
            what = (where or self.conversation).get_by_text(what)
        what.first.wait_for()

    def sees_no(self, what) -> None:
        """Wait until what a locator finds is gone."""
        what.first.wait_for(state="detached")

    def hears(self, text: str) -> None:
        """Wait until a screen reader has been told this."""
        self.page.get_by_role("status").filter(has_text=text).wait_for(state="attached")

    def has_focus_on(self, what) -> None:
        """Wait until this is what the keyboard acts on."""
        focused = self.page.locator(":focus")
        what.and_(focused).wait_for()

    def falls_asleep(self) -> None:
        self.page.evaluate(FALL_ASLEEP)
        self.page.wait_for_load_state("networkidle")

    def wakes(self) -> None:
        self.page.evaluate(WAKE)

    def words(self) -> str:
        """Return all that the conversation says, but for the time that is left."""
        return re.sub(r"\d+:\d\d left", "", self.conversation.inner_text())


# Not for the session: while Playwright is at work no other test can have an event loop.
@pytest.fixture(scope="module")
def chromium(chromium_path) -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # It makes a fresh profile for itself and removes it.
        browser = playwright.chromium.launch(executable_path=chromium_path, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture
def person(chromium, server):
    """Return a function that gives somebody a screen; a mistake of the page is a failure."""
    people = []

    def sit_down(actor: str = "alice", *, viewport=DESK, scheme: str = "light") -> Person:
        context = chromium.new_context(viewport=viewport, color_scheme=scheme, locale="en-GB")
        context.set_default_timeout(PATIENCE)
        context.add_init_script(HURRY)
        # Elsewhere, as in a frame that was refused, there is no storage.
        be = f"sessionStorage.setItem('actor', {json.dumps(actor)})"
        context.add_init_script(f"if (location.protocol === 'http:') {be}")
        people.append(Person(context.new_page(), server.url))
        return people[-1]

    yield sit_down
    for each in people:
        each.page.context.close()
    assert [each.mistakes for each in people] == [[]] * len(people)


@pytest.fixture(scope="session")
def axe():
    """Return a function that gives what axe-core finds wrong with what somebody sees."""
    script = AXE.read_text("utf-8")

    def find(person: Person) -> list[str]:
        person.page.evaluate(script)
        found = person.page.evaluate("axe.run({ resultTypes: ['violations'] })")
        return [
            f"{violation['id']}: {node['html']}"
            for violation in found["violations"]
            for node in violation["nodes"]
        ]

    return find
