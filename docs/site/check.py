"""Check a built site: `python docs/site/check.py build/site`.

Every link inside it leads to a file that is there, and to a place on it where it names one. No page
loads anything from elsewhere. Each page has its Markdown copy, whose links hold too.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("source", "srcset"), ("iframe", "src")}
# Search needs a script for its results, and has no text of its own; the index is made of names.
WITHOUT_COPY = {"genindex", "py-modindex", "search"}
HANDED_OUT = {"_downloads", "examples"}


class Page(HTMLParser):
    """The links and the named places of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, bool]] = []  # with whether the browser loads it by itself
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.places |= {found[name] for name in ("id", "name") if name in found}
        for name, value in found.items():
            is_style = tag == "link" and "stylesheet" in found.get("rel", "")
            if name == "href" or (tag, name) in LOADED:
                self.links.append((value, is_style or (tag, name) in LOADED))


def paths(site: Path) -> list[Path]:
    """Return the pages of a site, without the files that it only hands out."""
    found = sorted(site.rglob("*.html"))
    return [path for path in found if HANDED_OUT.isdisjoint(path.relative_to(site).parts)]


def places(page: Page | None) -> set[str]:
    """Return the places of a page; a file that is no page has none."""
    return page.places if page else set()


def problems(site: Path) -> Iterator[str]:
    """Yield what is wrong with a site, in sentences."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in paths(site)}
    if not pages:
        yield f"{site} holds no page"
    for path, page in pages.items():
        where = path.relative_to(site)
        for link, is_loaded in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if is_loaded and parts.scheme != "data":
                    yield f"{where} loads {link} from elsewhere"
                continue
            target = path.parent.joinpath(unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{where} links to {link}, which is not there"
            elif parts.fragment and unquote(parts.fragment) not in places(pages.get(target)):
                yield f"{where} links to {link}, and there is no such place on that page"
        if where.stem not in WITHOUT_COPY and not path.with_suffix(".md").is_file():
            yield f"{where} has no Markdown copy"
    for path in [*sorted(site.glob("*.md")), site / "llms.txt"]:
        yield from problems_of_copy(path)


def problems_of_copy(path: Path) -> Iterator[str]:
    """Yield each link of a Markdown file that leads nowhere."""
    if not path.is_file():
        yield f"{path.name} is not there"
        return
    prose = re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", "", path.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        name, _, place = link.partition("#")
        if "://" in link:
            continue
        target = path.parent / name if name else path
        if not target.is_file():
            yield f"{path.name} links to {link}, which is not there"
        elif place and place not in headings(target):
            yield f"{path.name} links to {link}, and there is no such heading"


def headings(path: Path) -> set[str]:
    """Return the places that the headings of a Markdown file make."""
    found = re.findall(r"(?m)^#+ (.+)$", path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in found}


def main() -> int:
    """Print what is wrong, and how much there was to look at."""
    site = Path(sys.argv[1]).resolve()
    found = list(problems(site))
    for problem in found:
        print(f"BROKEN: {problem}")
    print(f"{len(paths(site))} pages checked, {len(found)} problems")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
