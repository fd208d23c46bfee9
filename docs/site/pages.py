"""The Markdown of each page, with links that hold inside the site.

Three pages are files that stand elsewhere in the repository, because a code host looks for them
there. Their text has one home, and the page borrows it.
"""

import posixpath
import re
from pathlib import Path

DOCS = Path(__file__).parent.parent
ROOT = DOCS.parent
BORROWED = {
    "index": "README.md",
    "contributing": ".github/CONTRIBUTING.md",
    "reporting": ".github/SECURITY.md",
}
PAGE_OF = {source: f"docs/{page}.md" for page, source in BORROWED.items()}

# A fenced block comes first, so that nothing in it is taken for a link.
LINK = re.compile(
    r"^```.*?^```$|(?<!!)\[(?P<label>[^\]]*)\]\((?P<target>[^)\s]+)\)", re.DOTALL | re.MULTILINE
)
PICTURE = re.compile(
    r'<picture>\s*<source [^>]*srcset="(?P<dark>[^"]+)">\s*'
    r'<img alt="(?P<alt>[^"]*)" src="(?P<light>[^"]+)">\s*</picture>'
)


def source_of(page: str) -> str:
    """Return where the text of a page stands, from the root of the repository."""
    return BORROWED.get(page, f"docs/{page}.md")


def title(page: str) -> str:
    """Return the heading of a page, which says more in the site than the path of a file."""
    text = (ROOT / source_of(page)).read_text(encoding="utf-8")
    return text.split("# ", 1)[1].split("\n", 1)[0]


def markdown(page: str) -> str:
    """Return the text of a page; with links that lead to what the site holds."""
    source = source_of(page)
    text = (ROOT / source).read_text(encoding="utf-8")

    def inside(link: re.Match[str]) -> str:
        path, mark, anchor = (link["target"] or "").partition("#")
        if not path or "://" in path:
            return link[0]
        found = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if not (ROOT / found).exists():
            raise FileNotFoundError(f"{source} links to {path}, which is not there")
        found = PAGE_OF.get(found, found)
        if not found.startswith("docs/"):
            return link["label"]  # The site does not hold it; the name says where it is.
        page = found.removeprefix("docs/")
        if (ROOT / found).is_dir():  # Nobody can link to a folder, so the site has it in one file.
            return f'<a href="{page}.zip">{link["label"]}</a>'
        label = title(page.removesuffix(".md")) if link["label"].endswith(".md") else link["label"]
        return f"[{label}]({page}{mark}{anchor})"

    def themed(found: re.Match[str]) -> str:
        dark, light = (found[name].removeprefix("docs/") for name in ("dark", "light"))
        return f"![{found['alt']}]({light}){{.only-light}}\n![{found['alt']}]({dark}){{.only-dark}}"

    return PICTURE.sub(themed, LINK.sub(inside, text))


def read_borrowed(app, page: str, source: list[str]) -> None:
    """Give Sphinx the text of a page; what the file of a borrowed page holds comes after it."""
    own = source[0] if page in BORROWED else ""
    source[0] = f"{markdown(page)}\n{own}"
