"""Take the README's pictures of the inbox: python tests/e2e/inbox/picture.py

It needs what the browser tests need, and the typeface Inter (Debian's fonts-inter) on the machine.
"""

import shutil
import socket
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parent.parent.parent.parent
sys.path.append(str(ROOT / "docs" / "examples"))

from agent_server import build_app  # noqa: E402  It stands beside the page.
from stores.sqlite import SqliteStore  # noqa: E402


def ask(page: Page, url: str, question: str) -> None:
    page.goto(url)
    page.get_by_label("What is wrong with the order?").fill(question)
    page.get_by_role("button", name="Send").click()
    page.get_by_role("article").first.wait_for()


def press(page: Page, name: str, order: str) -> None:
    card = page.get_by_role("article").filter(has_text=order)
    card.get_by_role("button", name=name).click()


def main() -> None:
    late = timedelta()
    with TemporaryDirectory() as directory, socket.create_server(("127.0.0.1", 0)) as listening:
        store = SqliteStore(f"{directory}/runs.sqlite3")
        app = build_app(store, clock=lambda: datetime.now(UTC) + late)
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 800}, locale="en-GB")
            page.set_default_timeout(20_000)
            ask(page, url, "C-311 never arrived.")
            late += timedelta(minutes=7, seconds=20)
            ask(page, url, "The lamp of L-48 flickers.")
            late += timedelta(minutes=1, seconds=47)
            ask(page, url, "The cup of A-1042 arrived broken, and B-7 has a scratch.")
            press(page, "Approve", "A-1042")
            page.get_by_role("main").get_by_text("Approved by alice").wait_for()
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                page.evaluate("scrollTo(0, 0)")
                page.screenshot(path=ROOT / "docs" / f"inbox-{scheme}.png")
            browser.close()
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main()
