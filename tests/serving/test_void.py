"""Where a server shows that a guarantee is void: answers, card, log, metrics and page."""

import json

import pytest
from selenium.webdriver.common.by import By

from tests.browser import chromium
from tests.deployment.tiny_onnx import GUARANTEED
from tests.serving.clients import post_files, run_server, send_request
from tests.serving.fake_model import BrightestChannel, make_file
from tests.serving.test_pages_in_browser import choose, text, wait_for

VOID = GUARANTEED.voided("adapted data")


def serve_decision(decision):
    model = BrightestChannel()
    model.decision, model.metadata["decision"] = decision, decision.to_dict()
    return model


@pytest.mark.parametrize("decision", [GUARANTEED, VOID])
def test_answer_and_card(decision):
    model = serve_decision(decision)
    assert post_files(make_file(), model=model).json()["model"]["void"] == decision.void
    card = send_request("GET", "/model", model=model).json()
    assert card["void"] == decision.void == card["decision"]["void"]
    metrics = send_request("GET", "/metrics", model=model).text
    assert f"rightly_guarantee_void {float(decision is VOID)}" in metrics


@pytest.mark.parametrize("decision", [GUARANTEED, VOID])
def test_log(tmp_path, decision):
    path = tmp_path / "log.jsonl"
    post_files(make_file(), model=serve_decision(decision), log=path)
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["void"] == decision.void


def test_header_and_footer_of_the_page(tmp_path):
    picture = tmp_path / "clear.png"
    picture.write_bytes(make_file((255, 0, 0)))

    def read(browser, decision):
        with run_server(serve_decision(decision)) as (host, port):
            browser.get(f"http://{host}:{port}")
            choose(browser, picture)
            wait_for(browser, lambda: text(browser, "model"))
            return [browser.find_element(By.TAG_NAME, name).text for name in ("header", "footer")]

    with chromium() as browser:
        for part in read(browser, VOID):
            assert "Guarantee void: adapted data." in part
        for part in read(browser, GUARANTEED):
            assert "void" not in part
