"""Owns: a headless Chromium that is driven as a person would, over its debugging pipe.

Refuses: waiting for a while and hoping. Everything waits for something that can be seen.
"""
import base64
import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path

PATIENCE = 120


class Failure(Exception):
    """Something that a person would call broken."""


class Chromium:
    """The program, with a profile of its own."""

    def __init__(self, program, flags):
        self.profile = tempfile.TemporaryDirectory(prefix="bolide-chromium-", ignore_cleanup_errors=True)
        to_child, self.out = os.pipe()
        self.inp, from_child = os.pipe()

        def descriptors():
            # Chromium reads commands at 3 and writes answers at 4.
            spare = [os.dup(to_child), os.dup(from_child)]
            high = [os.dup2(fd, 60 + n, inheritable=True) for n, fd in enumerate(spare)]
            for n, fd in enumerate(high):
                os.dup2(fd, 3 + n, inheritable=True)

        self.log = open(Path(self.profile.name) / "log", "wb")
        self.child = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-dev-shm-usage", "--remote-debugging-pipe", "--window-size=1280,1000",
             "--host-resolver-rules=MAP localhost 127.0.0.1, MAP * ~NOTFOUND", "--lang=en-US",
             "--disable-features=PasswordLeakDetection,Translate,OptimizationHints",
             f"--user-data-dir={self.profile.name}/profile", *flags, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, close_fds=False,
            preexec_fn=descriptors, start_new_session=True)
        os.close(to_child)
        os.close(from_child)
        self.pending, self.next_id, self.events, self.answers = b"", 0, [], {}

    def send(self, method, session=None, **params):
        """Sends a command and returns its result."""
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        wanted, deadline = self.next_id, time.monotonic() + PATIENCE
        while wanted not in self.answers:
            if not self.read(deadline - time.monotonic()):
                raise Failure(f"Chromium does not answer {method}")
        answer = self.answers.pop(wanted)
        if "error" in answer:
            raise Failure(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def read(self, seconds):
        """Takes what Chromium says within `seconds`; false when it says nothing."""
        if not select.select([self.inp], [], [], max(seconds, 0))[0]:
            return False
        data = os.read(self.inp, 1 << 20)
        if not data:
            raise Failure("Chromium has ended")
        self.pending += data
        *messages, self.pending = self.pending.split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.events.append(message)
        return True

    def visitor(self, shots):
        """A page of a person whom the site does not know: no cookies, no cache."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session, shots)

    def close(self):
        try:
            self.send("Browser.close")
            self.child.wait(10)
        except (Failure, OSError, subprocess.TimeoutExpired):
            self.child.kill()
            self.child.wait()
        self.log.close()
        self.profile.cleanup()


class Page:
    """A tab."""

    def __init__(self, chromium, session, shots):
        self.chromium, self.session, self.shots = chromium, session, shots
        self.protocols, self.broken, self.failed, self.asked = {}, [], [], {}
        # What the answer said that the page in the tab was made of.
        self.fields = {}
        for domain in ("Page", "Runtime", "Network", "DOM"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setDeviceMetricsOverride", width=1280, height=1000, deviceScaleFactor=1, mobile=False)

    def send(self, method, **params):
        result = self.chromium.send(method, self.session, **params)
        self.take_events()
        return result

    def take_events(self):
        mine = [event for event in self.chromium.events if event.get("sessionId") == self.session]
        self.chromium.events = [event for event in self.chromium.events if event not in mine]
        for event in mine:
            params = event["params"]
            if event["method"] == "Network.requestWillBeSent":
                # A redirection asks again under the same number.
                self.asked.setdefault(params["requestId"], params["request"]["url"])
            elif event["method"] == "Network.responseReceived":
                response = params["response"]
                if response["url"].startswith("http") and not response.get("fromDiskCache"):
                    self.protocols.setdefault(response.get("protocol"), []).append(response["url"])
                if params["type"] == "Document":
                    self.fields = {name.lower(): value for name, value in response["headers"].items()}
                if response["status"] >= 500:
                    self.broken.append((params["requestId"], response["status"], response["url"]))
            elif event["method"] == "Network.loadingFailed" and not params.get("canceled"):
                url = self.asked.get(params["requestId"], "")
                self.failed.append(f"{params['type']} {params['errorText']} {url}")
            elif event["method"] == "Page.javascriptDialogOpening":
                self.chromium.send("Page.handleJavaScriptDialog", self.session, accept=True)

    def run(self, script):
        """The value of an expression in the page."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True, userGesture=True)
        if "exceptionDetails" in result:
            told = result["exceptionDetails"]
            raise Failure(f"{script[:80]}: {told.get('exception', told).get('description', told)}")
        return result["result"].get("value")

    def wait(self, what, script):
        """Waits until the expression is true; returns its value."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if value := self.run(script):
                    return value
            except Failure as failure:
                # The page went away while it was asked.
                if "context" not in str(failure) and "navigat" not in str(failure):
                    raise
            if time.monotonic() > deadline:
                raise Failure(f"waited in vain for {what}\nat {self.address()}: {self.text()[:600]}")
            self.chromium.read(0.05)
            self.take_events()

    def address(self):
        return self.run("location.href")

    def text(self):
        return self.run("document.body ? document.body.innerText : ''")

    def open(self, url):
        """Opens an address and waits for the end of loading; returns the status."""
        return self.after_loading(lambda: self.send("Page.navigate", url=url))

    def after_loading(self, act):
        """Does something that brings another page, and waits until that is there."""
        self.run("window.__old = true")
        answer = act()
        if answer and answer.get("errorText"):
            raise Failure(f"{answer['errorText']}")
        self.wait("another page", "!window.__old && document.readyState === 'complete' && location.href !== 'about:blank'")
        return self.run("performance.getEntriesByType('navigation')[0].responseStatus")

    def sees(self, *texts):
        """Each text is to be read in the page, soon."""
        for text in texts:
            self.wait(f"the text {text!r}", f"document.body && document.body.innerText.includes({json.dumps(text)})")

    def misses(self, *texts):
        for text in texts:
            if text in self.text():
                raise Failure(f"{text!r} is to be read at {self.address()}")

    def has(self, selector):
        self.wait(selector, f"!!document.querySelector({json.dumps(selector)})")

    def focuses(self, selector):
        self.wait(f"the cursor in {selector}", f"document.activeElement === document.querySelector({json.dumps(selector)})")

    def click(self, selector):
        """Presses the mouse on the middle of an element that stands still, until the element has been hit."""
        quoted = json.dumps(selector)
        for _ in range(20):
            place = self.stands_still(selector)
            # Between the look and the press the page may put something else there.
            self.run(f"""(() => {{
                const e = document.querySelector({quoted}), aim = window.__aim = {{hit: false}};
                document.addEventListener('click', event => {{
                    aim.hit = !!e && (e.contains(event.target) || event.target.contains(e)
                                      || event.target.control === e);
                }}, {{capture: true, once: true}});
            }})()""")
            for kind in ("mousePressed", "mouseReleased"):
                self.send("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)
            if self.was_hit():
                return
        raise Failure(f"{selector} moves away from each click at {self.address()}")

    def stands_still(self, selector):
        """Where an element is that can be clicked and has not moved between two looks."""
        quoted = json.dumps(selector)
        seen = None
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            place = self.wait(f"{selector} to be clickable", f"""(() => {{
                const e = document.querySelector({quoted});
                if (!e || e.disabled || e.getAttribute('aria-disabled') === 'true') return null;
                e.scrollIntoView({{block: 'center', behavior: 'instant'}});
                const r = e.getBoundingClientRect();
                const x = r.x + r.width / 2, y = r.y + r.height / 2;
                const top = document.elementFromPoint(x, y);
                return r.width && top && (e.contains(top) || top.contains(e)) ? [x, y] : null;
            }})()""")
            if place == seen:
                return place
            seen = place
            self.chromium.read(0.05)
            self.take_events()
        raise Failure(f"{selector} does not stand still at {self.address()}")

    def was_hit(self):
        """Whether the last click met its element; a page that went away was met."""
        try:
            return self.run("window.__aim ? window.__aim.hit : true")
        except Failure as failure:
            if "context" in str(failure) or "navigat" in str(failure):
                return True
            raise

    def click_to(self, selector):
        """Clicks what leads to another page; returns its status."""
        return self.after_loading(lambda: self.click(selector))

    def type(self, selector, text):
        """Writes text into a field whose content goes away, until the field has it."""
        quoted = json.dumps(selector)
        for _ in range(20):
            self.click(selector)
            # The page's own scripts may move the cursor, late.
            self.run(f"(() => {{ const e = document.querySelector({quoted}); e.focus();"
                     f" if (e.select) e.select(); else getSelection().selectAllChildren(e); }})()")
            self.send("Input.insertText", text=text)
            if self.run(f"(() => {{ const e = document.querySelector({quoted});"
                        f" return (e.value ?? e.innerText).trim(); }})()") == text.strip():
                return
            self.chromium.read(0.1)
            self.take_events()
        raise Failure(f"{selector} does not take {text!r} at {self.address()}")

    def rests(self):
        """The requests that WordPress's own scripts have made through jQuery are answered."""
        self.wait("the end of the page's requests", "document.readyState === 'complete' && (!window.jQuery || jQuery.active === 0)")

    def press(self, key, code=None):
        codes = {"Enter": 13, "Escape": 27, "Tab": 9}
        more = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=code or key,
                      windowsVirtualKeyCode=codes[key], **(more if kind == "keyDown" else {}))

    def choose_file(self, selector, path):
        self.has(selector)
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def shot(self, name):
        self.send("Page.bringToFront")
        data = self.send("Page.captureScreenshot", format="png")["data"]
        (self.shots / f"{name}.png").write_bytes(base64.b64decode(data))
