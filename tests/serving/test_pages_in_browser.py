"""The page for people, in a real browser."""

import base64

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser import chromium, console_errors
from tests.deployment.tiny_onnx import write_adaptable
from tests.serving.clients import run_server, serve_file
from tests.serving.fake_model import BrightestChannel, make_file, serving_process

CLEAR, UNCLEAR = (250, 20, 20), (130, 120, 110)

# What a person's drop or paste makes the browser say to the page.
GIVE = """
const [kind, data, name] = arguments;
const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
const data_transfer = new DataTransfer();
data_transfer.items.add(new File([bytes], name, { type: "image/png" }));
const event = kind === "drop"
  ? new DragEvent("drop", { dataTransfer: data_transfer, bubbles: true, cancelable: true })
  : new ClipboardEvent("paste", { clipboardData: data_transfer, bubbles: true, cancelable: true });
document.body.dispatchEvent(event);
"""


@pytest.fixture(scope="module")
def server():
    with serving_process() as (url, _):
        yield url


@pytest.fixture
def files(tmp_path):
    (tmp_path / "clear.png").write_bytes(make_file(CLEAR, (300, 220)))
    (tmp_path / "unclear.jpg").write_bytes(make_file(UNCLEAR, (32, 32), "JPEG"))
    (tmp_path / "broken.jpg").write_bytes(b"\x80\x04K\x01.")
    with (tmp_path / "large.png").open("wb") as file:
        file.truncate(30_000_000)
    return tmp_path


def text(browser, place):
    return browser.find_element(By.ID, place).text


def seen(browser, place):
    return browser.find_element(By.ID, place).is_displayed()


def wait_for(browser, condition):
    WebDriverWait(browser, 20).until(lambda _: condition())


def choose(browser, file, shows="result"):
    browser.find_element(By.ID, "file").send_keys(str(file))
    wait_for(browser, lambda: seen(browser, shows))


def test_a_chosen_image_gets_its_class_two_confidences_the_views_and_a_verdict(server, files):
    with chromium() as browser:
        browser.get(server)
        wait_for(browser, lambda: "ca_views on brightest_channel" in text(browser, "model"))
        choose(browser, files / "clear.png")
        assert text(browser, "class") == "red"
        assert text(browser, "headline") == "Trust it"
        assert "at or above the threshold, 60%" in text(browser, "reason")
        assert (text(browser, "raw"), text(browser, "calibrated")) == ("99.8%", "94.8%")
        bar = browser.find_element(By.ID, "calibrated-bar")
        assert bar.get_attribute("aria-valuenow") == "94.8"
        rows = [row.text for row in browser.find_elements(By.CSS_SELECTOR, "#views tr")]
        assert rows == [
            "rotation red ✓ agrees 99.8%",
            "grayscale red ✓ agrees 99.8%",
            "color jitter not needed",
        ]
        assert browser.execute_script("return document.getElementById('image').naturalWidth") == 300
        choose(browser, files / "unclear.jpg")
        wait_for(browser, lambda: text(browser, "headline") == "Do not act on this")
        assert "About 4 in 10 such predictions are right" in text(browser, "reason")
        assert "✕ differs" in text(browser, "views") and "2 of 3 agree" in text(
            browser, "agreement"
        )
        assert console_errors(browser) == []


class WithSets(BrightestChannel):
    """Sets hold the classes with a probability above one half."""

    def __init__(self):
        super().__init__()
        self.metadata["sets"] = {
            **{"coverage": 0.9, "score": "lac", "class_conditional": False, "samples": 1000},
            **{"coverage_interval": [0.88, 0.92], "marginal_classes": 0, "mean_size": 1.2},
        }

    def run(self, images, shift_estimate=None):
        outputs = super().run(images, shift_estimate)
        return outputs | {"in_set": outputs["probabilities"] > 0.5}


def test_the_prediction_set_is_shown_with_its_coverage(server, files):
    with run_server(WithSets()) as (host, port), chromium() as browser:
        browser.get(f"http://{host}:{port}")
        choose(browser, files / "clear.png")
        rows = [row.text for row in browser.find_elements(By.CSS_SELECTOR, "#set tr")]
        assert rows == ["red 94.8%"]
        told = text(browser, "set-told")
        assert "(lac) hold the true class of 90 % of images like the 1,000 held out" in told
        assert "holds for data like the calibration data, which the server cannot know" in told
        choose(browser, files / "unclear.jpg")
        wait_for(browser, lambda: text(browser, "set-told").startswith("It is empty"))
        assert not seen(browser, "set-table") and console_errors(browser) == []
        browser.get(server)
        choose(browser, files / "clear.png")
        assert not seen(browser, "set-card")


def test_without_a_threshold_the_number_is_put_into_words(files):
    with serving_process("--no-threshold") as (url, _), chromium() as browser:
        browser.get(url)
        choose(browser, files / "unclear.jpg")
        assert text(browser, "headline") == "About 4 in 10 such predictions are right"
        assert "no threshold" in text(browser, "reason") and not seen(browser, "tick")
        assert console_errors(browser) == []


@pytest.mark.parametrize("kind", ["drop", "paste"])
def test_an_image_can_be_dropped_or_pasted(server, kind):
    with chromium() as browser:
        browser.get(server)
        data = base64.b64encode(make_file((10, 200, 10))).decode()
        browser.execute_script(GIVE, kind, data, "<b>leaf</b>.png")
        wait_for(browser, lambda: seen(browser, "result"))
        assert text(browser, "class") == "green"
        assert text(browser, "caption") == "<b>leaf</b>.png"  # as text, not as markup
        assert console_errors(browser) == []


def test_what_is_wrong_is_reported_in_words_and_the_next_image_works(server, files):
    with chromium() as browser:
        browser.get(server)
        choose(browser, files / "broken.jpg", shows="error")
        assert "File 1 (broken.jpg) is not an image" in text(browser, "why")
        choose(browser, files / "large.png", shows="error")
        wait_for(browser, lambda: "30.0 MB" in text(browser, "why"))
        assert not seen(browser, "result")
        choose(browser, files / "clear.png")
        assert text(browser, "class") == "red" and not seen(browser, "error")


def test_a_server_that_is_gone_is_reported_in_words(files):
    with chromium() as browser:
        with serving_process() as (url, _):
            browser.get(url)
        choose(browser, files / "clear.png", shows="error")
        assert "did not answer" in text(browser, "why")


def test_the_page_can_be_used_from_the_keyboard(server):
    with chromium() as browser:
        browser.get(server)
        ActionChains(browser).send_keys(Keys.TAB).perform()
        assert browser.switch_to.active_element.get_attribute("id") == "file"
        assert browser.switch_to.active_element.accessible_name.startswith("Choose an image")
        ActionChains(browser).send_keys(Keys.TAB, Keys.ENTER).perform()
        assert browser.find_element(By.TAG_NAME, "details").get_attribute("open") is not None


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_fit_a_phone_and_follow_dark_mode(server, files, path):
    with chromium(dark=True) as browser:
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": 360, "height": 780, "deviceScaleFactor": 2, "mobile": True},
        )
        browser.get(server + path)
        if path == "/":
            choose(browser, files / "clear.png")
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 360
        ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(21, 23, 27)"
        assert console_errors(browser) == []


def test_a_server_that_adapts_charts_its_last_images(server, files, tmp_path):
    def points(browser, line):
        return len((browser.find_element(By.ID, line).get_attribute("points") or "").split())

    model = write_adaptable(tmp_path / "m.onnx")
    with serve_file(model, "--adapt", 8) as client, chromium() as browser:
        browser.get(str(client.base_url))
        assert not seen(browser, "stream")
        for count, picture in enumerate(("unclear.jpg", "clear.png", "unclear.jpg"), 1):
            choose(browser, files / picture)
            wait_for(
                browser, lambda n=count: f"the last {n} images" in text(browser, "stream-told")
            )
        assert points(browser, "chart-adapted") == points(browser, "chart-unadapted") == 3
        browser.get(str(client.base_url))  # also before the next image
        wait_for(browser, lambda: seen(browser, "stream") and points(browser, "chart-adapted") == 3)
        assert console_errors(browser) == []
    with chromium() as browser:
        browser.get(server)
        choose(browser, files / "clear.png")
        assert not seen(browser, "stream") and console_errors(browser) == []
