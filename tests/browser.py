"""A real browser for tests of pages: headless Chromium with its console at hand."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service


@contextmanager
def chromium(
    width: int = 1200, height: int = 900, dark: bool = False
) -> Iterator[webdriver.Chrome]:
    """A window of that size; a test is skipped where there is no browser, but never in CI."""
    driver, binary = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or binary is None:
        assert "CI" not in os.environ, "CI must have a browser: .ci/install-browser"
        pytest.skip("needs chromium and chromedriver: .ci/install-browser")
    options = Options()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument(f"--window-size={width},{height}")
    if dark:
        options.add_argument("--force-dark-mode")
        options.add_argument("--blink-settings=preferredColorScheme=0")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield browser
    finally:
        browser.quit()


def console_errors(browser: webdriver.Chrome) -> list[str]:
    """What the page complained about since the last look."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def screenshot(browser: webdriver.Chrome, path: Path) -> None:
    browser.save_screenshot(str(path))
