"""Sphinx's settings. Its sources are put together by make_site.py, which sets KIT."""

import os
import sys
from pathlib import Path

KIT = Path(os.environ["KIT"])
sys.path.insert(0, str(KIT / "solution/python"))

project = "dlsys-kit"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
nitpicky = True
nitpick_ignore_regex = [
    ("py:exc", r"[A-Z]\w*Error"),  # Python's own
    ("py:class", r"(_?ctypes|numpy|dlsys\.ndarray\.LP_DLArray)(\..*)?"),
]

myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
default_role = "literal"
toc_object_entries = False
napoleon_use_rtype = False  # what stands before a colon is often no type


def literal_blocks(app, what, name, obj, options, lines):
    """What is indented behind a colon is code in our docstrings."""
    for at in range(len(lines) - 2):
        if lines[at].endswith(":") and not lines[at + 1] and lines[at + 2].startswith("    "):
            lines[at] += ":"


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", literal_blocks)


html_theme = "furo"
html_title = "dlsys-kit"
html_static_path = ["_static"]
html_css_files = ["kit.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
pygments_style = "default"
pygments_dark_style = "github-dark"

copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
