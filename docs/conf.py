"""The site: `sphinx-build -W docs build/site`. What Sphinx does not do is in docs/site."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "site"), str(HERE.parent / "src")]

import copies  # noqa: E402
import pages  # noqa: E402
import pictures  # noqa: E402
import signatures  # noqa: E402

import agui_runs  # noqa: E402

project = "agui-runs"
author = "The agui-runs authors"
project_copyright = author
release = version = agui_runs.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["examples"]
nitpicky = True
# These are documented elsewhere, and the build asks no other site.
nitpick_ignore_regex = [
    ("py:.*", r"(collections\.abc|datetime|typing)\..*"),
    # What goes by its own name in a signature is on the page as a value and not as a class.
    ("py:class", "|".join(signatures.ALIASES.values())),
]

myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 3

default_role = "code"  # What stands in single backticks in a docstring is code.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 80

html_theme = "furo"
pygments_dark_style = "monokai"
html_title = f"agui-runs {release}"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False


def setup(app):
    """Connect what docs/site does to the steps of a build."""
    app.connect("source-read", pages.read_borrowed)
    app.connect("doctree-read", pictures.draw)
    app.connect("autodoc-process-signature", signatures.shorten)
    app.connect("html-page-context", copies.link_copy)
    app.connect("build-finished", copies.write)
