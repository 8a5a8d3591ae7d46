"""The page of a sweep, opened in a browser: buttons, slider, keys, and the numbers on it."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about this project's pictures")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--window-size=1200,900",
)  # fmt: skip
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # WebDriver's key of a reference to an element
RIGHT, LEFT, HOME, END = "\ue014", "\ue012", "\ue011", "\ue010"


class Browser:
    """A headless browser that is driven by WebDriver's protocol."""

    def __init__(self, browser, driver, folder):
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True)
        self.open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        try:
            said = iter(self.driver.stdout.readline, "")
            ports = (re.search(r"started successfully on port (\d+)", line) for line in said)
            port = next(filter(None, ports))[1]
            self.at = f"http://127.0.0.1:{port}/session"
            options = {"binary": browser, "args": [*FLAGS, f"--user-data-dir={folder}"]}
            wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
            self.at += "/" + self.send("", wanted)["sessionId"]
        except BaseException:
            self.end()
            raise

    def send(self, command, body=None, method="POST"):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.at + command, data, method=method)
        request.add_header("Content-Type", "application/json")
        with self.open(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def run(self, script):
        return self.send("/execute/sync", {"script": script, "args": []})

    def find(self, selector):
        found = self.send("/element", {"using": "css selector", "value": selector})
        return f"/element/{found[ELEMENT]}"

    def click(self, selector):
        self.send(self.find(selector) + "/click", {})

    def press(self, key, selector="body"):
        self.send(self.find(selector) + "/value", {"text": key})

    def text(self, selector):
        return self.send(self.find(selector) + "/text", method="GET")

    def table(self, selector):
        rows = f"return [...document.querySelectorAll('{selector} tr')].map("
        return self.run(rows + "row => [...row.cells].map(cell => cell.textContent))")[1:]

    def close(self):
        try:
            self.send("", method="DELETE")
        finally:
            self.end()

    def end(self):
        self.driver.terminate()
        self.driver.communicate()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if not (program and driver):
        needed = os.environ.get("CI") == "true" and sys.platform == "linux"
        assert not needed, "the tests need a browser: apt-get install chromium chromium-driver"
        pytest.skip("no chromium, or no chromedriver (Debian: chromium and chromium-driver)")
    opened = Browser(program, driver, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def sweep(browser, tmp_path):
    """A sweep of five steps, whose page is open."""
    x, w = tg.tensor([0.5, 1.5], requires_grad=True), tg.tensor(2.0, requires_grad=True)
    h = tg.exp(x * w)
    y = (h * x / 4.0).sum()
    steps = tg.show.sweep(y, x=x, w=w, h=h, y=y)
    steps.save(tmp_path / "sweep.html")
    browser.send("/url", {"url": (tmp_path / "sweep.html").as_uri()})
    steps.wanted = dict(zip("xwh", tg.autograd.grad(y, (x, w, h))))
    return steps


def numbers(text):
    return [float(n) for n in re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", text)]


def test_it_begins_with_the_seed(browser, sweep):
    assert browser.text("h1") == "reverse sweep from y, seed 1: 5 records"
    assert browser.text("#title") == "step 0: seed"
    assert browser.text("#count") == "step 0 of 5"
    assert browser.table("#adjoints") == [["y", "1"]]
    assert browser.table("#operands") == []
    assert browser.run("return document.getElementById('previous').disabled")


def test_buttons_go_through_all_steps(browser, sweep):
    for step in sweep:
        browser.click("#next")
        assert browser.text("#title") == step.title
        assert browser.text("#summary") == step.summary
        assert browser.table("#operands") == [list(c.cells()) for c in step.operands]
    assert browser.run("return document.getElementById('next').disabled")
    browser.click("#previous")
    assert browser.text("#title") == sweep[-2].title


def test_the_numbers_are_those_of_grad(browser, sweep):
    browser.press(END)
    found = dict(browser.table("#adjoints"))
    assert found.keys() >= {"x", "w", "h", "y"}
    for name, g in sweep.wanted.items():
        np.testing.assert_allclose(numbers(found[name]), g.reshape(-1).tolist(), rtol=1e-5)
    browser.press(HOME)
    assert dict(browser.table("#adjoints")) == {"y": "1"}


def test_arrow_keys(browser, sweep):
    for key, step in (
        (RIGHT, 1),
        (RIGHT, 2),
        (LEFT, 1),
        (LEFT, 0),
        (LEFT, 0),
        (END, 5),
        (RIGHT, 5),
    ):
        browser.press(key)
        assert browser.text("#count") == f"step {step} of 5"


def test_the_slider_and_its_own_keys(browser, sweep):
    browser.press(RIGHT, "#slider")
    assert browser.text("#count") == "step 1 of 5"
    browser.run(
        "const slider = document.getElementById('slider');"
        "slider.value = 4; slider.dispatchEvent(new Event('input'))"
    )
    assert browser.text("#title") == sweep[3].title
    browser.press(LEFT, "#slider")
    assert browser.text("#title") == sweep[2].title
    browser.click("#next")
    assert browser.run("return document.getElementById('slider').value") == "4"


def test_the_graph_shows_which_record_it_is(browser, sweep):
    lit = "return [...document.querySelectorAll('.box.lit')].map(box => box.dataset.at)"
    assert browser.run(lit) == []
    for step in sweep:
        browser.press(RIGHT)
        assert browser.run(lit) == [str(step.position)]
        edges = browser.run("return document.querySelectorAll('[data-to].lit').length")
        assert edges == len(step.operands)
        stroke = "return getComputedStyle(document.querySelector('.lit .shape')).stroke"
        assert browser.run(stroke) in ("rgb(11, 102, 208)", "rgb(88, 166, 255)")


def test_the_graph_shows_the_adjoints_so_far(browser, sweep):
    lines = "return Object.fromEntries([...document.querySelectorAll('[data-adjoint]')].map("
    shown = lines + "line => [line.dataset.adjoint, line.textContent]))"
    assert {name: text for name, text in browser.run(shown).items() if text} == {"y": "adjoint 1"}
    browser.press(END)
    found = browser.run(shown)
    assert len(found) == 7  # five records, two leaves
    for name in "xwh":
        wanted = sweep.wanted[name].numpy().ravel().tolist()
        assert numbers(found[name]) == pytest.approx(wanted, rel=1e-5)
    browser.press(HOME)
    assert browser.run(shown)["x"] == ""


def test_all_text_lies_within_its_box(browser, sweep):
    browser.press(END)
    outside = """
    const within = (a, b) => a.left >= b.left && a.right <= b.right && a.top >= b.top
      && a.bottom <= b.bottom;
    return [...document.querySelectorAll('.box text')].filter(text => !within(
      text.getBoundingClientRect(), text.parentNode.querySelector('.shape').getBoundingClientRect()
    )).map(text => text.textContent)"""
    assert browser.run("return document.querySelectorAll('.box text').length") >= 14
    assert browser.run(outside) == []


def test_it_loads_nothing(browser, sweep):
    assert browser.run("return performance.getEntriesByType('resource').map(e => e.name)") == []


def test_names_are_shown_as_they_are(browser, tmp_path):
    x = tg.tensor(2.0, requires_grad=True)
    name = "</script><b>&x"
    tg.show.sweep(tg.exp(x), {name: x}).save(tmp_path / "named.html")
    browser.send("/url", {"url": (tmp_path / "named.html").as_uri()})
    browser.press(RIGHT)
    assert browser.table("#operands")[0][1] == name
    assert browser.run("return document.querySelectorAll('b').length") == 0
