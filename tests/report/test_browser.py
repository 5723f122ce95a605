"""The page in a real browser: it renders, filters and searches, fits a phone, follows dark mode, and complains of nothing."""

from __future__ import annotations

import re
import shutil

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from tigs.data.corpora.pairs import Pair
from tigs.report.methods import label
from tigs.report.page import write_page

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--window-size=1280,1000",
)
NASTY = ("<script>window.hurt=1</script>", "<img/src=x/onerror=window.hurt=1>", "</script>", "&amp;")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium, chromium-driver)")
    options = ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # Its start page may still be loading when it is told to go elsewhere, and on a busy machine that shows.
    options.add_argument("about:blank")
    with Chrome(options=options, service=Service(executable_path=driver)) as chrome:
        yield chrome


@pytest.fixture
def page(browser, page_path):
    """Freshly loaded; whatever the test did, the browser must have had nothing to complain of."""
    browser.get(page_path.as_uri())
    WebDriverWait(browser, 60).until(lambda it: it.execute_script("return document.readyState") == "complete")
    yield browser
    assert complaints(browser) == []


def complaints(browser):
    """What the browser said about our page; its own start page has troubles of its own without a network."""
    return [entry for entry in browser.get_log("browser") if not entry["message"].startswith("chrome://")]


def cards(browser):
    return browser.find_elements(By.CSS_SELECTOR, ".example")


def choose(browser, name, value):
    Select(browser.find_element(By.ID, f"pick-{name}")).select_by_visible_text(value)


def search(browser, text):
    box = browser.find_element(By.ID, "search")
    box.clear()
    box.send_keys(text)


def found(browser):
    return browser.find_element(By.ID, "found").text


def test_everything_is_drawn_and_nothing_was_fetched(page):
    sizes = page.execute_script(
        "return [...document.querySelectorAll('figure svg, table')].map(e => e.getBoundingClientRect())"
        ".map(box => [box.width, box.height])"
    )
    shown = [size for size in sizes if size != [0, 0]]  # folded tables have no size
    assert len(shown) > 40
    assert all(width > 200 and height > 40 for width, height in shown)
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_labels_of_charts_do_not_overlap(page):
    overlaps = page.execute_script("""
        const clashes = [];
        for (const svg of document.querySelectorAll('figure svg')) {
          const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
          boxes.forEach(([text, a], i) => boxes.slice(0, i).forEach(([other, b]) => {
            if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
              clashes.push([svg.getAttribute('aria-label'), text, other]);
          }));
        }
        return clashes;""")
    assert overlaps == []


def test_task_ratio_and_strategy_choose_the_templates(page):
    choose(page, "experiment", "APRC, profile small")
    assert "context" not in cards(page)[0].text
    n_blanks = {}
    for ratio in ("25 %", "75 %"):
        choose(page, "ratio", ratio)
        n_blanks[ratio] = len(page.find_elements(By.CSS_SELECTOR, ".example .blank"))
        assert len(cards(page)) == 20
    assert n_blanks["75 %"] > 2 * n_blanks["25 %"]
    choose(page, "experiment", "Poetry, profile small")
    assert "context" in cards(page)[0].text
    choose(page, "strategy", "middle")
    for card in cards(page)[:5]:
        # Blanks of the middle stand side by side: nothing but blanks from the first to the last.
        line = card.find_element(By.CSS_SELECTOR, ".text:has(.blank)")
        assert re.fullmatch(r"[^_]+_+[^_]+", re.sub(r"\xa0| ", "_", line.get_property("textContent")))


def test_a_card_shows_every_method_or_the_chosen_one(page, experiments):
    choose(page, "experiment", "Poetry, profile small")
    methods = [label(method) for method in experiments["poetry"].methods if method != "template"]
    assert names_on_cards(page)[0] == ["context", "template", "reference", *methods]
    choose(page, "method", "TIGS")
    assert names_on_cards(page) == [["context", "template", "reference", "TIGS"]] * 20


def names_on_cards(browser):
    return browser.execute_script(
        "return [...document.querySelectorAll('.example')].map(card => "
        "[...card.querySelectorAll('.row > :first-child')].map(name => name.textContent))"
    )


def test_filled_words_are_marked_and_coloured_by_their_nll(page):
    choose(page, "experiment", "Poetry, profile small")
    choose(page, "ratio", "75 %")
    row = cards(page)[0].find_element(By.CSS_SELECTOR, ".row.tigs")
    fills = row.find_elements(By.CSS_SELECTOR, ".fill")
    assert len(fills) == len(cards(page)[0].find_elements(By.CSS_SELECTOR, ".blank")) > 0
    marks = page.execute_script(
        "return [...document.querySelectorAll('.example .fill[title]')].map(e => [e.title, getComputedStyle(e).backgroundColor])"
    )
    colours = {}
    for title, colour in marks:
        level = sum(float(title.split()[0]) >= bound for bound in (1, 2, 4, 6, 8))
        colours.setdefault(level, set()).add(colour)
    assert len(colours) == 6
    assert all(len(of_level) == 1 for of_level in colours.values())
    assert len(set().union(*colours.values())) == len(colours)


def test_search_finds_words_of_sentences_and_of_fills(page):
    choose(page, "experiment", "APRC, profile small")
    word = cards(page)[3].find_element(By.CSS_SELECTOR, ".tigs .fill").text
    search(page, word.upper())
    assert cards(page)
    assert all(word in card.text for card in cards(page))
    search(page, "no such words anywhere")
    assert cards(page) == []
    assert found(page).startswith("nothing found")
    search(page, " ")
    assert len(cards(page)) == 20


def test_chinese_is_shown_and_searched_without_spaces(page):
    choose(page, "experiment", "Poetry, profile small")
    reference = cards(page)[2].find_elements(By.CSS_SELECTOR, ".text")[2]
    assert " " not in reference.text
    assert reference.get_attribute("lang") == "zh"
    search(page, reference.text)
    assert len(cards(page)) == 1


def test_pages_are_turned(page):
    before = cards(page)[0].text
    assert found(page).startswith("1–20 of 24 found among the first 24 of 24 sentences")
    assert not page.find_element(By.ID, "previous").is_enabled()
    page.find_element(By.ID, "next").click()
    assert len(cards(page)) == 4
    assert not page.find_element(By.ID, "next").is_enabled()
    page.find_element(By.ID, "previous").click()
    assert cards(page)[0].text == before


def test_it_fits_a_phone_and_tables_scroll(page):
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    )
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") == 390
        table = page.find_element(By.CSS_SELECTOR, ".scroll")
        width, inner = (
            page.execute_script(f"return arguments[0].{name}", table) for name in ("clientWidth", "scrollWidth")
        )
        assert width < 390 < inner
        widths = page.execute_script("return [...document.querySelectorAll('figure')].map(f => f.clientWidth)")
        assert min(widths) > 300
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_follows_the_readers_light_and_dark(page):
    seen = {}
    for scheme in ("light", "dark"):
        page.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        body = page.find_element(By.TAG_NAME, "body")
        label_of_axis = page.find_element(By.CSS_SELECTOR, "figure svg text")
        seen[scheme] = (body.value_of_css_property("background-color"), label_of_axis.value_of_css_property("fill"))
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def brightness(colour):
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    for scheme, (background, text) in seen.items():
        assert (brightness(background) > brightness(text)) == (scheme == "light")


def test_text_of_a_corpus_does_nothing(browser, write_experiment, load, tmp_path):
    pairs = [Pair((*NASTY, str(n)), (*NASTY, *NASTY, str(n))) for n in range(3)]
    write_experiment(tmp_path, "dialog", methods=("seq2seq-f", "tigs"), pairs=pairs, n=3)
    load(tmp_path)
    browser.get(write_page(tmp_path).as_uri())
    assert browser.execute_script("return window.hurt") is None
    assert all(NASTY[0] in card.text for card in cards(browser))
    assert browser.find_elements(By.CSS_SELECTOR, "img, .example script") == []
    search(browser, NASTY[2])
    assert len(cards(browser)) == 3
    assert complaints(browser) == []


def test_a_page_without_figures_is_quiet(browser, tmp_path):
    browser.get(write_page(tmp_path).as_uri())
    assert "No figures yet" in browser.find_element(By.TAG_NAME, "main").text
    assert complaints(browser) == []
