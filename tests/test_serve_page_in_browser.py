"""The page of `seqtool serve` in a real browser, with real models: typing, swapping, alignment, files, keys, errors."""

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import run_browser, set_screen
from command_line import SEQTOOL, start_command
from tiny_run import make_run, translate_words

from seqtool.run_directory import RunDir

SCREENS = {"desktop": (1280, 800), "phone": (390, 844)}
SENTENCE = "a man in the blue shirt walks"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("uvicorn")
    folder = tmp_path_factory.mktemp("served")
    runs = [make_exact_run(folder / "en-de"), make_exact_run(folder / "de-en", backwards=True)]
    names = [f"--name={run.path.name}={run.path}" for run in runs]
    with serving("serve", *names, "--engine=torch", "--max-chars=2000") as address:
        yield address


def make_exact_run(folder: Path, **direction: bool) -> RunDir:
    """Train a model that makes no mistakes in short sentences, with a token for each word."""
    return make_run(folder, trained=True, steps=400, vocab=440, d_model=64, decoder_layers=1, **direction)


class serving:
    """A server in a process of its own, on a free port, for as long as the block lasts."""

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments

    def __enter__(self) -> str:
        command = [*SEQTOOL, *self.arguments, "--port=0", "--no-access-log"]  # nobody reads on
        self.process = start_command(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"http://[^\s;]+", line):
                return found.group()
        raise AssertionError(f"the server ended with {self.process.wait()}")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from run_browser(tmp_path_factory.mktemp("browser"))


@pytest.fixture
def page(browser: Any, server: str) -> Iterator[Any]:
    """The page, opened anew at desktop size; whatever a test does with it, nothing may be wrong in the console."""
    open_page(browser, server)
    yield browser
    assert browser.get_log("browser") == []


def open_page(browser: Any, address: str, screen: str = "desktop", scheme: str = "light") -> None:
    set_screen(browser, *SCREENS[screen], scheme, is_phone=screen == "phone")
    browser.get(f"{address}/?source=en&target=de")
    browser.execute_script("localStorage.clear()")
    browser.get(f"{address}/?source=en&target=de")
    wait_for(browser, "return document.getElementById('target').value")


def wait_for(browser: Any, script: str, wanted: Callable[[Any], object] = bool) -> Any:
    """Run a script until what it returns is wanted."""
    deadline = time.monotonic() + 60
    while not wanted(found := browser.execute_script(script)):
        assert time.monotonic() < deadline, f"still {found!r} after {script}"
        time.sleep(0.03)
    return found


def find(browser: Any, selector: str) -> Any:
    from selenium.webdriver.common.by import By

    return browser.find_element(By.CSS_SELECTOR, selector)


def type_text(browser: Any, text: str) -> None:
    find(browser, "#text").send_keys(text)


def shown(browser: Any) -> str:
    script = "return [...document.querySelectorAll('#translation p')].map((p) => p.textContent).join('\\n')"
    text: str = browser.execute_script(script)
    return text


def wait_for_translation(browser: Any, expected: str) -> None:
    wait_for(
        browser,
        "return [...document.querySelectorAll('#translation p')].map((p) => p.textContent).join('\\n')",
        lambda text: text == expected,
    )


def linked(browser: Any, side: str) -> list[str]:
    words: list[str] = browser.execute_script(
        f"return [...document.querySelectorAll('#{side} .linked')].map((word) => word.textContent)"
    )
    return words


def point_at(browser: Any, element: Any) -> None:
    from selenium.webdriver import ActionChains

    ActionChains(browser).move_to_element(element).perform()


def test_what_is_typed_is_translated_line_by_line(page: Any) -> None:
    type_text(page, f"{SENTENCE}\n\ntwo dogs play")
    wait_for_translation(page, f"{translate_words(SENTENCE)}\n\nzwei Hunde spielen")
    assert find(page, "#translation").get_attribute("lang") == "de"
    assert find(page, "#count").text == "1,956 characters left"


def test_typing_on_never_shows_an_older_answer(page: Any) -> None:
    """Answers come in another order than the questions: the first one is held back until the second is shown."""
    page.execute_script("""
        const real = window.fetch;
        let number = 0;
        window.fetch = (path, options) => {
          if (number++) return real(path, options);
          return new Promise((resolve) => {
            window.release = () => real(path, { ...options, signal: undefined }).then(resolve);
          });
        };
    """)
    type_text(page, "two dogs")
    wait_for(page, "return window.release !== undefined")
    type_text(page, " play")
    wait_for_translation(page, "zwei Hunde spielen")
    page.execute_async_script("window.release().then(() => setTimeout(arguments[0], 50))")
    assert shown(page) == "zwei Hunde spielen"


def test_swapping_exchanges_languages_and_texts(page: Any) -> None:
    type_text(page, SENTENCE)
    wait_for_translation(page, translate_words(SENTENCE))
    find(page, "#swap").click()
    wait_for_translation(page, SENTENCE)
    assert find(page, "#text").get_attribute("value") == translate_words(SENTENCE)
    pair = page.execute_script(
        "return [document.getElementById('source').value, document.getElementById('target').value]"
    )
    assert pair == ["de", "en"]


def test_the_language_of_a_text_is_detected(page: Any) -> None:
    from selenium.webdriver.support.ui import Select

    Select(find(page, "#source")).select_by_value("auto")
    assert not find(page, "#swap").is_enabled()
    type_text(page, "she waves at the man and walks")
    wait_for_translation(page, translate_words("she waves at the man and walks"))
    assert Select(find(page, "#source")).first_selected_option.text == "English (auto)"
    assert find(page, "#swap").is_enabled()


def test_a_text_in_the_target_language_is_offered_to_the_other(page: Any) -> None:
    from selenium.webdriver.support.ui import Select

    Select(find(page, "#source")).select_by_value("auto")
    type_text(page, "ein Mann läuft in dem blauen Hemd und winkt")
    wait_for(page, "return document.querySelector('#note button')")
    assert find(page, "#note").text == "The text seems to be in German already. Translate it into English"
    find(page, "#note button").click()
    wait_for_translation(page, "a man walks in the blue shirt and waves")


def test_pointing_at_a_word_marks_the_words_that_it_comes_from(page: Any) -> None:
    type_text(page, f"two dogs\n{SENTENCE}")
    wait_for_translation(page, f"zwei Hunde\n{translate_words(SENTENCE)}")
    pairs = dict(zip(translate_words(SENTENCE).split(), SENTENCE.split(), strict=True))
    from selenium.webdriver.common.by import By

    seen = {}
    for word in page.find_elements(By.CSS_SELECTOR, "#translation p:last-child .word"):
        point_at(page, word)
        assert linked(page, "translation") == [word.text]
        seen[word.text] = linked(page, "mirror")
    right = sum(words == [pairs[word]] for word, words in seen.items())
    assert right >= len(pairs) - 2, seen  # it is what the model attends to, and no more certain than that
    point_at(page, find(page, "#count"))
    assert linked(page, "translation") == linked(page, "mirror") == []


def test_the_caret_and_the_pointer_mark_words_from_the_side_of_the_text(page: Any) -> None:
    type_text(page, "two dogs play")
    wait_for_translation(page, "zwei Hunde spielen")
    page.execute_script("const text = document.getElementById('text'); text.focus(); text.setSelectionRange(5, 5);")
    wait_for(page, "return document.querySelector('#mirror .linked')?.textContent", lambda word: word == "dogs")
    page.execute_script("document.getElementById('text').setSelectionRange(1, 1)")
    wait_for(page, "return document.querySelector('#mirror .linked')?.textContent", lambda word: word == "two")
    x, y = page.execute_script(
        "const box = document.querySelectorAll('#mirror .word')[2].getBoundingClientRect();"
        "return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)]"
    )
    page.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})
    wait_for(page, "return document.querySelector('#mirror .linked')?.textContent", lambda word: word == "play")


def test_words_and_other_translations_can_be_reached_by_keys(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    type_text(page, "two dogs play")
    wait_for_translation(page, "zwei Hunde spielen")
    find(page, "#translation").send_keys(Keys.ARROW_RIGHT)
    assert page.switch_to.active_element.text == "zwei"
    page.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert page.switch_to.active_element.text == linked(page, "translation")[0] == "Hunde"
    page.switch_to.active_element.send_keys(Keys.ENTER)
    wait_for(page, "return document.querySelectorAll('.alternatives button').length", lambda n: n == 3)
    page.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert page.execute_script("return document.querySelector('.alternatives')") is None
    page.switch_to.active_element.send_keys(Keys.END)
    assert page.switch_to.active_element.text == "spielen"


def test_a_click_offers_other_translations_of_a_line(page: Any) -> None:
    type_text(page, "two dogs\nplay at night")
    wait_for_translation(page, "zwei Hunde\nspielen bei Nacht")
    find(page, "#translation p:last-child .word").click()
    wait_for(page, "return document.querySelectorAll('.alternatives button').length", lambda n: n == 3)
    first = find(page, ".alternatives button")
    chosen = first.get_property("textContent")  # while it appears it has no visible text
    assert chosen not in ("", "spielen bei Nacht")
    first.click()
    wait_for_translation(page, f"zwei Hunde\n{chosen}")
    find(page, "#translation p:last-child").click()
    wait_for(page, "return document.querySelectorAll('.alternatives button').length", lambda n: n == 3)
    assert find(page, ".alternatives button").get_property("textContent") == "spielen bei Nacht"


def test_the_translation_is_copied(page: Any) -> None:
    page.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    type_text(page, "two dogs\nplay")
    wait_for_translation(page, "zwei Hunde\nspielen")
    find(page, "#copy").click()
    wait_for(page, "return document.getElementById('copied').textContent", lambda text: text == "Copied")
    copied = page.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == "zwei Hunde\nspielen"


def test_a_text_that_is_too_long_is_not_sent(page: Any) -> None:
    page.execute_script("const text = document.getElementById('text'); text.value = 'dog '.repeat(501); text.focus();")
    type_text(page, "s")
    wait_for(page, "return document.getElementById('note').textContent")
    assert find(page, "#note").text == "The text is 5 characters too long."
    assert shown(page) == ""
    find(page, "#clear").click()
    assert find(page, "#note").text == ""
    assert page.switch_to.active_element.get_attribute("id") == "text"


DROP = """
const data = new DataTransfer();
data.items.add(new File([arguments[0]], arguments[1]));
for (const type of ["dragenter", "dragover", "drop"]) {
  document.body.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
  window.seen = [...(window.seen ?? []), document.getElementById("drop").hidden];
}
return window.seen;
"""
FETCH = "fetch(document.querySelector('#files a').href).then((r) => r.text()).then(arguments[0])"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a <b>.txt", "two dogs\n\nplay\n", "zwei Hunde\n\nspielen\n"),
        ("page.html", "<p>two <b>dogs</b> play</p>", "<p>zwei <b>Hunde</b> spielen</p>"),
        (
            "film.srt",
            "1\n00:00:01,000 --> 00:00:02,000\nshe waves\n",
            "1\n00:00:01,000 --> 00:00:02,000\nsie winkt\n",
        ),
    ],
)
def test_a_dropped_file_is_translated(page: Any, name: str, content: str, expected: str) -> None:
    assert page.execute_script(DROP, content, name) == [False, False, True]
    wait_for(page, "return document.querySelector('#files a')")
    assert page.execute_async_script(FETCH) == expected
    assert find(page, "#files .name").text == name


def test_a_chosen_file_that_cannot_be_translated_is_named(page: Any, tmp_path: Path) -> None:
    for name, content, expected in [
        ("film.srt", b"no times\n", "line 1: text before the times of the first subtitle"),
        ("text.pdf", b"%PDF", "Only files that end in .txt, .html, .srt can be translated."),
    ]:
        (tmp_path / name).write_bytes(content)
        find(page, "#file").send_keys(str(tmp_path / name))
        wait_for(page, f"return (document.querySelector('#files li .bad')?.textContent ?? '').includes('{expected}')")
    # the browser itself notes the answer 400 in its console
    assert [entry["message"].split(" - ")[0].rpartition("/")[2] for entry in page.get_log("browser")] == [
        "translate_file"
    ]


def test_a_lost_server_is_reported_and_asked_again(browser: Any, server: str) -> None:
    open_page(browser, server)
    browser.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    type_text(browser, "two dogs")
    wait_for(browser, "return document.getElementById('note').textContent", lambda t: "cannot be reached" in t)
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", {**offline, "offline": False})
    wait_for_translation(browser, "zwei Hunde")
    assert find(browser, "#note").text == ""
    browser.get_log("browser")


def test_a_busy_server_is_asked_again_when_it_said(page: Any) -> None:
    page.execute_script("""
        const real = window.fetch;
        const answers = [new Response('{"error": "full"}', { status: 503, headers: { "Retry-After": "2" } })];
        window.fetch = (...request) => (answers.length ? Promise.resolve(answers.pop()) : real(...request));
    """)
    type_text(page, "two dogs")
    wait_for(page, "return document.getElementById('note').textContent", lambda t: "asked again in 2 seconds" in t)
    wait_for_translation(page, "zwei Hunde")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_the_page_fits_and_is_accessible(browser: Any, server: str, screen: str, scheme: str) -> None:
    open_page(browser, server, screen, scheme)
    assert accessibility_findings(browser) == []
    type_text(browser, f"{SENTENCE}\ntwo dogs")
    wait_for_translation(browser, f"{translate_words(SENTENCE)}\nzwei Hunde")
    find(browser, "#translation p .word").click()
    wait_for(browser, "return document.querySelector('.alternatives button')")
    browser.execute_script(DROP, "two dogs", f"{'long-' * 20}name.txt")
    wait_for(browser, "return document.querySelector('#files a')")
    assert accessibility_findings(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") == SCREENS[screen][0]
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(243, 245, 248)" if scheme == "light" else "rgb(16, 20, 26)")
    assert browser.get_log("browser") == []


def accessibility_findings(browser: Any) -> list[tuple[str, str, str]]:
    """What axe-core finds wrong: the rule, how serious it is, and the element."""
    import axe_core_python

    browser.execute_script((Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    browser.execute_script("document.getAnimations().forEach((one) => one.finish())")
    found = browser.execute_async_script("axe.run().then(arguments[0])")
    assert len(found["passes"]) > 15
    return [(one["id"], one["impact"], one["nodes"][0]["html"]) for one in found["violations"]]


def test_light_and_dark_can_be_chosen_and_stay(page: Any) -> None:
    def background() -> str:
        color: str = page.execute_script("return getComputedStyle(document.body).backgroundColor")
        return color

    light = background()
    find(page, "#theme").click()
    dark = background()
    assert dark != light
    assert find(page, "#theme").get_attribute("aria-pressed") == "true"
    page.refresh()
    wait_for(page, "return document.getElementById('target').value")
    assert background() == dark


def test_no_request_leaves_the_server(page: Any, server: str) -> None:
    import json

    page.get_log("performance")
    page.refresh()
    type_text(page, "two dogs")
    wait_for_translation(page, "zwei Hunde")
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if not url.startswith(f"{server}/")] == []
    assert len(urls) >= 10


def test_the_page_may_load_nothing_from_elsewhere_and_run_nothing_that_is_put_into_it(page: Any, server: str) -> None:
    policy = page.execute_async_script(
        "fetch(arguments[0]).then((r) => arguments[1](r.headers.get('content-security-policy')))", server
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["frame-ancestors"] == "'none'"
    assert rules["script-src"] == "'self'"
    type_text(page, "<img src=x onerror=window.hit=1> two")
    wait_for(page, "return document.querySelector('#translation p')")
    assert page.execute_script("return document.querySelector('#translation img, #mirror img')") is None


def test_a_server_with_keys_asks_for_one(browser: Any, server: str, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("0123456789abcdef\n")
    run = make_exact_run(tmp_path / "run")
    with serving("serve", f"--name=en-de={run.path}", "--engine=torch", f"--api-keys={tmp_path / 'keys'}") as address:
        open_page(browser, address)
        type_text(browser, "two dogs")
        wait_for(browser, "return document.getElementById('note').textContent")
        assert find(browser, "#note").text == "This server needs an API key."
        find(browser, "#key").send_keys("0123456789abcdex")
        wait_for(browser, "return document.getElementById('note').textContent", lambda t: "not valid" in t)
        find(browser, "#key").send_keys("\ue003f")
        wait_for_translation(browser, "zwei Hunde")
        assert not find(browser, "#swap").is_enabled()
    browser.get_log("browser")
