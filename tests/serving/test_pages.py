"""The pages as text: policy and escaping. In a browser: test_pages_in_browser."""

import re

import pytest

from tests.serving.clients import send_request


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_fetch_nothing_from_elsewhere_and_run_only_what_they_bring(path):
    response = send_request("GET", path)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", response.text)
    assert not re.search(r"\son\w+=|\sstyle=|javascript:", response.text)
    assert "{{" not in response.text


def test_the_docs_escape_what_a_request_says():
    text = send_request("GET", "/docs", headers={"host": "x<script>alert(1)</script>"}).text
    assert "<script>" not in text and "/predict" in text and "curl -F image=@" in text
