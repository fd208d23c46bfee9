"""Beside each HTML page its Markdown, and an `llms.txt` that lists them: tools read these."""

import inspect
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pages
from signatures import shorten
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.inspect import stringify_signature

import agui_runs

SENTENCE = re.compile(r"^(?!#|<!--|:::|```|\||\[|!)\S.*?\.(?=\s)", re.DOTALL | re.MULTILINE)


def link_copy(app, page: str, template, context, tree) -> None:
    """Name the Markdown copy in the head of the HTML page."""
    if page in app.env.found_docs:
        name = page.rsplit("/", 1)[-1]
        link = f'<link rel="alternate" type="text/markdown" href="{name}.md">'
        context["metatags"] = context.get("metatags", "") + link


def write(app, failed: Exception | None) -> None:
    """Write the copies, and beside them the files that pages link to."""
    if failed or app.builder.format != "html":
        return
    out = Path(app.outdir)
    texts = {page: text(page) for page in in_order(app.env)}
    for page, words in texts.items():
        out.joinpath(f"{page}.md").write_text(words, encoding="utf-8")
    for kind in ("*.json", "*.svg", "*.png"):
        for path in pages.DOCS.glob(kind):
            shutil.copy(path, out)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(pages.DOCS / "examples", out / "examples", ignore=ignored, dirs_exist_ok=True)
    shutil.make_archive(str(out / "examples"), "zip", out, "examples")
    out.joinpath("llms.txt").write_text(contents(texts), encoding="utf-8")


def in_order(env: Any) -> list[str]:
    """Return every page, in the order of the contents."""
    return ["index", *env.toctree_includes["index"]]


def text(page: str) -> str:
    """Return a page as Markdown that stands by itself."""
    if page == "api":
        return api()
    return re.sub(r"(?m)\{\.only-light\}$|^!\[.*\{\.only-dark\}\n", "", pages.markdown(page))


def contents(texts: dict[str, str]) -> str:
    """Return the `llms.txt` of these pages: each with the first sentence that it says."""
    listed = []
    for page, words in texts.items():
        found = SENTENCE.search(words)
        if found is None:
            raise ValueError(f"{page} has no first sentence")
        about = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[0]).split())
        listed.append(f"- [{pages.title(page)}]({page}.md): {about}")
    return f"# agui-runs\n\n> {agui_runs.__doc__}\n\n## Pages\n\n" + "\n".join(listed) + "\n"


def api() -> str:
    """Return the names, signatures and docstrings of the package as one Markdown page."""
    source = pages.DOCS.joinpath("api.md").read_text("utf-8")
    said = [source.split("\n## ", 1)[0].rstrip()]
    docs = attributes()
    for name in agui_runs.__all__:
        value = getattr(agui_runs, name)
        said.append(f"## {name}")
        if inspect.isclass(value):
            said.append(in_markdown(inspect.getdoc(value)))
            if value.__dict__.get("__slots__"):
                said.append(f"`{name}{signature(value)}`")
            own = [(key, doc) for (owner, key), doc in docs.items() if owner == name]
            said.append("\n".join(f"- `{key}`: {doc}" for key, doc in own))
            for method, member in members(value):
                said += [f"### {name}.{method}", in_markdown(inspect.getdoc(member))]
        elif inspect.isfunction(value):
            said += [f"`{name}{signature(value)}`", in_markdown(inspect.getdoc(value))]
        else:
            said.append(in_markdown(docs["", name]))
    return "\n\n".join(filter(None, said)) + "\n"


def signature(value: Any) -> str:
    """Return the signature as the API page has it."""
    found = stringify_signature(inspect.signature(value), unqualified_typehints=True)
    return shorten(None, "", "", None, None, found, None)[0].replace("~", "")


def attributes() -> dict[tuple[str, str], str]:
    """Return what is said below each field, constant and type alias."""
    found = {}
    for path in sorted(Path(agui_runs.__file__).parent.glob("*.py")):
        module = "agui_runs" if path.stem == "__init__" else f"agui_runs.{path.stem}"
        docs = ModuleAnalyzer.for_module(module).find_attr_docs()
        found.update({place: "\n".join(doc).strip() for place, doc in docs.items()})
    return found


def members(value: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class, with their signatures."""
    for name, member in vars(value).items():
        found = getattr(member, "__func__", member)
        if name.startswith("_") or not (inspect.isfunction(found) or isinstance(found, property)):
            continue
        yield f"{name}{signature(found) if inspect.isfunction(found) else ''}", found


def in_markdown(doc: str | None) -> str:
    """Return a docstring with its examples fenced."""
    return re.sub(r"(?ms)^>>> .*?(?=\n\n|\Z)", lambda code: f"```python\n{code[0]}\n```", doc or "")
