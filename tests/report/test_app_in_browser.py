"""The app in a real browser: from a dropped file to a saved policy, by mouse and by keyboard."""

import asyncio
import json
import re
import threading
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest
from axe import serious_violations
from pages import wait_for
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import calibrant as cal
from calibrant.apps.browser.opened import AppData
from calibrant.apps.browser.server import AppServer

pytestmark = pytest.mark.browser

WAIT = 90
SHOWN = (
    "return !document.querySelector('[aria-busy], .working') && !!document.querySelector('main h1')"
)
CELLS = "return document.querySelectorAll(\"[data-brush] [data-key^='bin:']\").length"


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(2)
    said = rng.choice([50, 60, 70, 80, 90, 100], 900)
    right = rng.random(900) < said / 100 - 0.1
    path = tmp_path / "mine.csv"
    pl.DataFrame(
        {
            "question": [f"Which river is number {i // 2}?" for i in range(900)],
            "llm": ["mini", "large"] * 450,
            "topic": rng.choice(["law", "math"], 900),
            "answer": [f"river {i}" for i in range(900)],
            "reference": [f"river {7 * i}" for i in range(900)],
            "certainty": [f"{c} %" for c in said],
            "ok": np.where(right, "yes", "no"),
        }
    ).write_csv(path)
    return path


@contextmanager
def serving(path=None):
    """Serve the app from a thread of its own; yields its address."""
    loop = asyncio.new_event_loop()
    server = AppServer(None if path is None else AppData(str(path)))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def done(work):
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    try:
        yield done(server.start())
    finally:
        done(server.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def first(browser, selector):
    return browser.find_element("css selector", selector)


def text_of(browser, selector):
    return browser.execute_script(
        "return document.querySelector(arguments[0])?.textContent || ''", selector
    )


def fetched(browser, selector):
    """What a link would save, as the browser gets it."""
    return browser.execute_async_script(
        "const done = arguments[1];"
        "fetch(document.querySelector(arguments[0]).href).then(r => r.text()).then(done)",
        selector,
    )


def test_from_a_dropped_file_to_a_policy(browser, table, tmp_path):
    before = table.read_bytes()
    with serving() as address:
        browser.get(address)
        first(browser, "#choose").send_keys(str(table))
        wait_for(browser, SHOWN, WAIT)
        assert "say more than they know" in text_of(browser, "h1")
        # What it is confidently wrong about is there without a click.
        wait_for(browser, "return !!document.querySelector('tr.wrong')", WAIT)
        whole = text_of(browser, ".rows-head h2")
        # A click on a cell of the diagram lists its rows.
        assert browser.execute_script(CELLS) > 3
        cell = browser.find_elements("css selector", "[data-brush] [data-key^='bin:']")[-1]
        ActionChains(browser).move_to_element(cell).click().perform()
        wait_for(
            browser,
            "const head = document.querySelector('.rows-head h2');"
            f"return head && head.textContent !== {whole!r}",
        )
        assert "said 100 %" in text_of(browser, ".rows-head")
        # A row is opened and its grade corrected.
        first(browser, "tr.wrong .open-row").click()
        wait_for(browser, "return document.querySelector('#panel').open")
        first(browser, "[data-grade=right]").click()
        wait_for(
            browser, "return document.querySelector('#panel').textContent.includes('corrected')"
        )
        first(browser, "[data-close]").click()
        assert table.read_bytes() == before
        # The limit is dragged on the chart itself.
        first(browser, "[data-tab=decide]").click()
        wait_for(browser, "return !!document.querySelector('.handle')", WAIT)
        # Until something is certified there is nothing to save.
        for _ in range(5):
            before_drag = browser.current_url
            knob = first(browser, ".handle .knob")
            ActionChains(browser).click_and_hold(knob).move_by_offset(0, -60).release().perform()
            wait_for(browser, f"return location.href !== {before_drag!r}")
            wait_for(browser, SHOWN, WAIT)
            wait_for(browser, "return !!document.querySelector('.handle')", WAIT)
            if browser.find_elements("css selector", "a[data-save]"):
                break
            assert "Nothing to save" in text_of(browser, ".two.decide")
        limit = float(browser.execute_script(
            "return new URLSearchParams(location.search).get('decide.max_error')"
        ))  # fmt: skip
        assert limit > 0.1
        wait_for(browser, "return !!document.querySelector('a[data-save]')", WAIT)
        policy = json.loads(fetched(browser, "a[data-save]"))
        model = text_of(browser, "[data-focus] h2").partition(",")[0]
    saved = tmp_path / "policy.json"
    saved.write_text(json.dumps(policy))
    wanted = cal.decide(table, max_error=limit, only_model=model)["results"][0]
    assert cal.load_policy(saved).threshold == wanted["threshold"]


def test_the_address_holds_what_is_looked_at(browser, table):
    with serving(table) as address:
        browser.get(address)
        wait_for(browser, SHOWN, WAIT)
        wait_for(browser, "return document.querySelectorAll('#picker button').length === 2", WAIT)
        before = text_of(browser, "[aria-label='Reliability diagram'] h2")
        other = next(
            button
            for button in browser.find_elements("css selector", "#picker button")
            if button.get_attribute("aria-pressed") == "false"
        )
        name = other.text
        other.click()
        wait_for(browser, f"return document.querySelector('.two')?.textContent.includes({name!r}) "
                          f"&& location.search.includes('model=')")  # fmt: skip
        diagram = "document.querySelector(\"[aria-label='Reliability diagram'] h2\").textContent"
        wait_for(browser, f"return {diagram} !== {before!r}", WAIT)
        assert f"calibrant audit {table}" in text_of(browser, "#command code")
        shared = browser.current_url
        browser.back()
        wait_for(browser, f"return {diagram} === {before!r}", WAIT)
        browser.get(shared)
        wait_for(browser, SHOWN, WAIT)
        assert name in text_of(browser, "[aria-label='Reliability diagram'] h2")


def test_a_group_and_a_pair_of_models_list_their_rows(browser, table):
    with serving(table) as address:
        browser.get(address)
        base = address.split("/?")[0]
        browser.get(f"{base}/?tab=groups&model=mini")
        wait_for(browser, "return !!document.querySelector('[data-links] [role=button]')", WAIT)
        bar = browser.execute_script(
            "return [...document.querySelectorAll('[data-links] [role=button]')]"
            ".find(part => part.getBoundingClientRect().width > 0)"
        )
        ActionChains(browser).move_to_element(bar).click().perform()
        wait_for(browser, "return !!document.querySelector('.rows-head [data-drop=group]')", WAIT)
        topic = text_of(browser, ".rows-head [data-drop=group]").split(": ")[1].split()[0]
        counted = pl.read_csv(table).filter(pl.col("llm") == "mini", pl.col("topic") == topic)
        assert f"of these {counted.height} answers" in text_of(browser, ".rows-head h2")
        browser.get(f"{base}/?tab=compare")
        wait_for(browser, "return !!document.querySelector('[data-links] [role=button]')", WAIT)
        pair = browser.execute_script(
            "return [...document.querySelectorAll('[data-links] [role=button]')]"
            ".find(part => part.dataset.key.includes('\u241f')"
            " && part.getBoundingClientRect().width > 0)"
        )
        ActionChains(browser).move_to_element(pair).click().perform()
        wait_for(browser, "return location.search.includes('split=1')", WAIT)


def test_a_dot_of_the_watch_lists_its_rows(browser, table):
    with serving(table) as address:
        browser.get(address)
        browser.get(f"{address.split('/?')[0]}/?tab=watch")
        wait_for(browser, "return !!document.querySelector('[data-links] [role=button]')", WAIT)
        dot = browser.execute_script(
            "return [...document.querySelectorAll('[data-links] [role=button]')]"
            ".filter(part => part.getBoundingClientRect().width > 0)[1]"
        )
        asked = dot.get_attribute("data-key")
        dot.send_keys(Keys.ENTER)
        wait_for(browser, "return !!document.querySelector('.rows-head [data-drop=group]')", WAIT)
        assert "watched: batch 2" in text_of(browser, ".rows-head [data-drop=group]")
        model = asked.partition("\u241f")[0]
        second = pl.read_csv(table).filter(pl.col("llm") == model).slice(100, 100)
        wrong = second.filter(pl.col("ok") == "no").height
        assert f"{wrong} of these 100 answers" in text_of(browser, ".rows-head h2")


def test_the_keyboard_alone_is_enough(browser, table):
    with serving(table) as address:
        browser.get(address)
        wait_for(browser, "return !!document.querySelector('tr[data-place]')", WAIT)
        body = first(browser, "body")
        body.send_keys("j")
        body.send_keys("j")
        browser.switch_to.active_element.send_keys(Keys.ENTER)
        wait_for(browser, "return document.querySelector('#panel').open")
        asked = text_of(browser, "#panel-title")
        browser.switch_to.active_element.send_keys("j")
        wait_for(
            browser, f"return document.querySelector('#panel-title').textContent !== {asked!r}"
        )
        # A corrected grade leaves the reader at the same row; after the last one comes a page.
        chosen = "return document.querySelector('tr.chosen')?.dataset.place"
        place = browser.execute_script(chosen)
        browser.switch_to.active_element.send_keys("1")
        wait_for(browser, "return document.querySelector('#panel').innerText.includes('corrected')")
        wait_for(browser, "return !document.querySelector('[data-rows][aria-busy]')", WAIT)
        assert browser.execute_script(chosen) == place
        browser.switch_to.active_element.send_keys(Keys.ESCAPE)
        for _ in range(24):
            first(browser, "body").send_keys("j")
        wait_for(browser, "return location.search.includes('start=25')", WAIT)
        first(browser, "[data-tab=decide]").send_keys(Keys.ENTER)
        wait_for(browser, "return !!document.querySelector('.handle')", WAIT)
        first(browser, ".handle").send_keys(Keys.ARROW_UP)
        wait_for(browser, "return location.search.includes('decide.max_error=0.11')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_tab_can_be_read_by_everybody(browser, table, scheme, width):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        with serving(table) as address:
            browser.get(address)
            tabs = ("overview", "compare", "groups", "decide", "mend")
            for tab in (*tabs, "questions", "labels", "watch"):
                browser.get(f"{address.split('/?')[0]}/?tab={tab}")
                wait_for(browser, SHOWN, WAIT)
                wait_for(browser, "return !document.querySelector('[aria-busy]')", WAIT)
                assert serious_violations(browser) == [], tab
                wide = browser.execute_script("return document.documentElement.scrollWidth")
                assert wide <= width, tab
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_slider_says_what_a_confidence_means(browser, table, tmp_path):
    with serving(table) as address:
        browser.get(address)
        browser.get(f"{address.split('/?')[0]}/?tab=mend")
        wait_for(browser, "return document.querySelector('.slide output')", WAIT)
        slide = (
            "const s = document.querySelector('[data-map]'); s.value = 95;"
            "s.dispatchEvent(new Event('input'));"
            "return [document.querySelector('.slide output').textContent,"
            " document.querySelector('[data-save]').href]"
        )
        told, saved = browser.execute_script(slide)
        text = browser.execute_async_script(
            "const done = arguments[1]; fetch(arguments[0]).then(r => r.text()).then(done)", saved
        )
    path = tmp_path / "mend.json"
    path.write_text(text)
    mended = cal.load_mend(path)
    low, high = mended.interval(0.95)
    wanted = [f"{100 * value:.0f}" for value in (0.95, mended.probability(0.95), low, high)]
    assert re.findall(r"\d+", told) == wanted


def test_two_apps_in_one_browser_do_not_disturb_each_other(browser, table, tmp_path):
    other = tmp_path / "other.csv"
    pl.read_csv(table).head(400).write_csv(other)
    with serving(table) as one, serving(other) as two:
        for address in (one, two):
            browser.get(address)
        browser.get(one.split("/?")[0])
        wait_for(browser, SHOWN, WAIT)
        wait_for(browser, "return document.querySelector('#about').textContent.includes('900')")
