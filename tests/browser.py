"""Debian's Chromium without a window and without a network, for pages that we write.

with open_browser() as browser:
    browser.open(path, width=380)
    assert not browser.complaints and not browser.requests
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)


class Browser:
    """One window, a page at a time. `complaints` and `requests` are of the page that is open."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self._driver = driver
        self.complaints: list[str] = []
        """What the console says: errors, warnings, anything."""
        self.requests: list[str] = []
        """What the page asks for besides itself; data: addresses, which it brings along, are not among these."""

    def open(self, page: Path | str, *, width: int = 1200, scheme: Literal["light", "dark"] = "light") -> None:
        """Show a file, or what a server of ours has at an address, in a window of so many pixels."""
        address = page.absolute().as_uri() if isinstance(page, Path) else page
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send_command("Emulation.setDeviceMetricsOverride", **screen)
        self.send_command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._drain()
        self._driver.get(address)
        messages, asked = self._drain()
        self.complaints = messages
        self.requests = [url for url in asked if url != address and not url.startswith("data:")]

    def run(self, script: str, *arguments: object) -> Any:
        """What a line of JavaScript returns."""
        return self._driver.execute_script(script, *arguments)

    def screenshot(self, path: Path) -> None:
        """The whole page, however long."""
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.send_command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def print(self, path: Path) -> None:
        """The page as it comes out of a printer, on A4."""
        paper = self.send_command("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False)
        path.write_bytes(base64.b64decode(paper["data"]))

    def send_command(self, command: str, **arguments: Any) -> Any:
        """A command of Chromium's own protocol."""
        return self._driver.execute_cdp_cmd(command, arguments)

    def new_messages(self) -> tuple[list[str], list[str]]:
        """Console messages and requests since the page was opened, or since the last call."""
        messages, asked = self._drain()
        return messages, [url for url in asked if not url.startswith(("data:", "blob:"))]

    def _drain(self) -> tuple[list[str], list[str]]:
        """Console messages and addresses asked for since the last call."""
        messages = [entry["message"] for entry in self._driver.get_log("browser")]
        events = [json.loads(entry["message"])["message"] for entry in self._driver.get_log("performance")]
        asked = [
            event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]
        return messages, asked


@contextmanager
def open_browser(*flags: str) -> Iterator[Browser]:
    """A browser of our own with a profile of its own, closed at the end; `flags` are added to the usual ones."""
    if not (CHROMIUM.exists() and DRIVER.exists()):
        pytest.fail("Looking at a page needs Debian's chromium and chromium-driver; `make browser` installs them.")
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*_FLAGS, *flags, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options, Service(str(DRIVER)))
        try:
            yield Browser(driver)
        finally:
            driver.quit()
