"""Headless Chromium over its pipe of DevTools: a page at an exact size, scripts run in it, a screenshot."""
import base64
import json
import os
import shutil
import subprocess
import tempfile

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--hide-scrollbars", "--font-render-hinting=none", "--remote-debugging-pipe"]


class Chromium:
    """One browser with one tab; `with Chromium() as browser:` ends it."""

    def __init__(self, program=None):
        self.program = program or shutil.which("chromium") or shutil.which("google-chrome")
        if not self.program:
            raise SystemExit("no chromium here; ./dev setup names packages, apt-get install chromium installs it")
        self.profile = tempfile.mkdtemp()
        to_browser, self.to_browser = os.pipe()
        self.from_browser, from_browser = os.pipe()
        for end in to_browser, from_browser:
            os.set_inheritable(end, True)
        # The browser reads requests at descriptor 3 and writes answers to 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}', self.program, *FLAGS,
             f"--user-data-dir={self.profile}", "about:blank"],
            close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        tab = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        self.ask("Page.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to_browser)  # it ends with its pipe
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.profile, ignore_errors=True)

    def message(self):
        while b"\0" not in self.buffer:
            read = os.read(self.from_browser, 1 << 20)
            if not read:
                raise SystemExit(f"{self.program} ended unasked")
            self.buffer += read
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, **params):
        """The result of a DevTools method; events that come meanwhile are kept."""
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") != self.number:
                self.events.append(answer.get("method"))
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def open(self, path, width, height, is_dark=False):
        """Loads a file in a window of exactly this size, at one device pixel a CSS pixel."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=False)
        scheme = "dark" if is_dark else "light"
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme},
                                                         {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.events.clear()
        self.ask("Page.navigate", url="file://" + os.path.abspath(path))
        while "Page.loadEventFired" not in self.events:
            self.events.append(self.message().get("method"))
        self.run("new Promise((done) => setTimeout(done, 250))")  # what pages draw after they are laid out

    def run(self, script):
        """The value of an expression in the page; of a promise what it gives."""
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def screenshot(self, whole=False):
        """A PNG of the window, or of the whole page."""
        params = {"format": "png"}
        if whole:
            size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
            params.update(captureBeyondViewport=True,
                          clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})
        return base64.b64decode(self.ask("Page.captureScreenshot", **params)["data"])
