"""A headless Chromium for tests, spoken to over a pipe: no package is needed.

Chromium reads messages of its DevTools protocol from file 3 and writes them to file 4,
each ended by a zero byte.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PLACED = (
    "import fcntl, os, sys\n"
    "there, back = (fcntl.fcntl(int(f), fcntl.F_DUPFD, 10) for f in sys.argv[1:3])\n"
    "os.dup2(there, 3)\nos.dup2(back, 4)\n"
    "os.execv(sys.argv[3], sys.argv[3:])\n"
)
"""Puts the two pipes at files 3 and 4, then becomes the browser."""


def find_browser():
    """Return the path of a Chromium: ``DENSPU_CHROMIUM``, or the first one found."""
    named = os.environ.get("DENSPU_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page; ``with Browser(folder) as page: ...``."""

    def __init__(self, profile: Path, seconds: float = 60):
        self.seconds = seconds
        self.events = []
        self._number = 0
        self._rest = b""
        hears, self._out = os.pipe()
        self._in, speaks = os.pipe()
        command = [sys.executable, "-c", PLACED, str(hears), str(speaks)]
        command += [find_browser(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        with open(profile.with_suffix(".log"), "w") as log:
            self._process = subprocess.Popen(
                command,
                pass_fds=(hears, speaks),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        os.close(hears)
        os.close(speaks)
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        session, self._session = self._session, None
        try:
            if session:
                self.call("Browser.close")
        except (OSError, EOFError, TimeoutError):
            pass
        finally:
            os.close(self._out)
            os.close(self._in)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)

    def call(self, method, **params):
        """Send one command and return its result; keep the events seen meanwhile."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        end = time.monotonic() + self.seconds
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], end - time.monotonic())
            if not ready:
                raise TimeoutError("The browser does not answer.")
            got = os.read(self._in, 1 << 16)
            if not got:
                raise EOFError("The browser has closed the pipe.")
            self._rest += got
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    # --- pages ----------------------------------------------------------------------

    def open(self, path, width=1280, height=900, dark=False):
        """Open a file in a window of this size and wait until it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[theme])
        self.events.clear()
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        self.until("document.readyState === 'complete'")

    def js(self, expression):
        """Return the value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, expression, seconds=10):
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.js(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"Never true: {expression}")
            time.sleep(0.02)

    def mouse(self, x, y):
        """Move the pointer to a place in the window."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def tap(self, x, y):
        """Tap with a finger."""
        point = {"x": x, "y": y}
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[point])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, key):
        """Press and release a key."""
        code = {"Tab": 9}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
            )

    def complaints(self):
        """Return errors and warnings of the console, and exceptions."""
        self.js("0")
        kept = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                kept.append(params["exceptionDetails"])
            elif event.get("method") == "Log.entryAdded":
                kept.append(params["entry"])
            elif event.get("method") == "Runtime.consoleAPICalled":
                kept.append(params)
        return kept

    def requests(self):
        """Return the addresses that were asked for, data URIs left out."""
        self.js("0")
        asked = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in asked if not url.startswith("data:")]
