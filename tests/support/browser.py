"""Runs headless Chromium, for the tests of pages and for pictures of them."""

import json
import os
import re
import shutil
import subprocess

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here; hint: apt-get install chromium"
)

# Opens a page in a frame of a width, where the page's own policy stays in force, then does steps
# with it: their result comes out. %d, %s and %s: width, the page, the steps.
_FRAME = """<!doctype html><body style="margin:0">
<iframe id="f" style="width:%dpx;height:800px;border:0"></iframe><pre id="out"></pre><script>
const frame = document.getElementById("f"), started = performance.now();
frame.onload = () => {
  const page = frame.contentDocument, view = frame.contentWindow;
  page.body.getBoundingClientRect();
  const opened = performance.now() - started;
  const out = (() => {%s})();
  out.opened = opened;
  document.getElementById("out").textContent = JSON.stringify(out);
};
frame.srcdoc = %s;
</script>"""


def _run(folder, *arguments):
    command = [CHROMIUM, "--headless", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
               "--disable-background-networking", "--disable-component-update",
               "--disable-dev-shm-usage", f"--user-data-dir={folder / 'profile'}"]  # fmt: skip
    if os.geteuid() == 0:
        command.append("--no-sandbox")
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def chromium(folder, *arguments):
    """Output of headless Chromium with a profile of its own."""
    return _run(folder, *arguments).stdout


def visit(folder, url, *arguments):
    """(the document as it stands after its scripts, lines on the console) of a page."""
    done = _run(folder, "--enable-logging=stderr", "--dump-dom", *arguments, url)
    return done.stdout, re.findall(r"CONSOLE.*", done.stderr)


def act(folder, text, steps, width=1200):
    """(what `steps` return, lines on the console): JavaScript with `page` and `view` of a page.

    The object that they return gets `opened` besides, milliseconds until the page was laid out.
    """
    page = json.dumps(text).replace("</", "<\\/").replace("<!--", "<\\!--")
    (folder / "frame.html").write_text(_FRAME % (width, steps, page), encoding="utf-8")
    dom, console = visit(folder, (folder / "frame.html").as_uri())
    raw = dom.partition('<pre id="out">')[2].partition("</pre>")[0]
    assert raw, f"the steps returned nothing; the console: {console}"
    return json.loads(raw.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")), console
