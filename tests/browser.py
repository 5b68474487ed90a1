"""A real browser for tests of pages: headless Chromium with its console at hand."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.remote_connection import ChromeRemoteConnection
from selenium.webdriver.remote.file_detector import UselessFileDetector

from tests.processes import DEVNULL, PIPE, spawn

ARGUMENTS = ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage")
_running = ExitStack()  # the browser that all tests of this process share
_started: "list[Browser]" = []


class Browser(webdriver.Remote):
    def execute_cdp_cmd(self, command: str, arguments: dict) -> dict:
        return self.execute("executeCdpCommand", {"cmd": command, "params": arguments})["value"]

    def get_log(self, kind: str) -> list[dict]:
        return self.execute("getLog", {"type": kind})["value"]


@contextmanager
def chromium(width: int = 1200, height: int = 900, dark: bool = False) -> Iterator[Browser]:
    """A tab of that size; a test is skipped where there is no browser, but never in CI."""
    if not _started:
        _started.append(_running.enter_context(_start()))
    (browser,) = _started
    try:
        first = browser.current_window_handle
        browser.switch_to.new_window("tab")
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        if dark:
            scheme = {"name": "prefers-color-scheme", "value": "dark"}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        browser.get_log("browser")  # of the test before
        yield browser
        browser.close()
        browser.switch_to.window(first)
    except BaseException:
        stop()  # the next test starts another
        raise


def stop() -> None:
    """Ends the browser, if one was started."""
    _started.clear()
    _running.close()


@contextmanager
def _start() -> Iterator[Browser]:
    driver, binary = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or binary is None:
        assert "CI" not in os.environ, "CI must have a browser: .ci/install-browser"
        pytest.skip("needs chromium and chromedriver: .ci/install-browser")
    options = Options()
    options.binary_location = binary
    # By a pipe, so that the browser ends where its driver is killed.
    for argument in (*ARGUMENTS, "remote-debugging-pipe"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with spawn([driver, "--port=0"], stdout=PIPE, stderr=DEVNULL) as process:
        told = ""
        while not (port := re.search(r"successfully on port (\d+)", told)):
            line = process.stdout.readline()
            assert line, f"chromedriver ended: {told}"
            told += line
        address = ChromeRemoteConnection(f"http://127.0.0.1:{port[1]}")
        # Files are chosen by their paths: the browser is on this machine.
        browser = Browser(address, options=options, file_detector=UselessFileDetector())
        try:
            yield browser
        finally:
            browser.quit()


def console_errors(browser: Browser) -> list[str]:
    """What the page complained about since the last look."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
