"""Owns: what a person does with the status page, by keyboard alone, and what the page has to be.

    console_page.py --base URL --chromium PATH --shots DIR

Each step prints a line; the first that fails ends the program with status 1 and what was seen.
Pictures in both colour schemes and two widths are in DIR, for other persons to look at.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from chromium import Chromium, Failure, Page  # noqa: E402

# Everything that can be worked with.
CONTROLS = "a[href], button, input, [tabindex='0']"

# The texts whose contrast with what is behind them is less than WCAG 2.2 AA wants (4.5), by the
# formulas of its section 1.4.3.
CONTRAST = """(() => {
    const parts = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const behind = e => {
        for (; e; e = e.parentElement) {
            const color = parts(getComputedStyle(e).backgroundColor);
            if (color.length === 3 || color[3] === 1) return color;
        }
        return [255, 255, 255];
    };
    const faint = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let seen = 0;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const e = node.parentElement;
        if (!node.textContent.trim() || !e.checkVisibility() || e.closest('noscript, option')) continue;
        seen++;
        const [one, other] = [light(parts(getComputedStyle(e).color)), light(behind(e))].sort((a, b) => b - a);
        const ratio = (one + 0.05) / (other + 0.05);
        if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${node.textContent.trim().slice(0, 30)}`);
    }
    return seen < 40 ? [`only ${seen} texts`] : faint;
})()"""


class Console(Page):
    """The page, and everything that the browser says of it."""

    def __init__(self, chromium, shots):
        context = chromium.send("Target.createBrowserContext")["browserContextId"]
        target = chromium.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = chromium.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.complaints = []
        super().__init__(chromium, session, shots)
        for domain in ("Log", "Accessibility"):
            self.send(f"{domain}.enable")

    def take_events(self):
        for event in self.chromium.events:
            if event.get("sessionId") != self.session:
                continue
            params = event["params"]
            if event["method"] == "Log.entryAdded":
                entry = params["entry"]
                self.complaints.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")
            elif event["method"] == "Runtime.exceptionThrown":
                self.complaints.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                self.complaints.append(str(params["args"]))
        super().take_events()

    def size(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def focus(self, selector):
        """Goes to an element by the keyboard."""
        for _ in range(80):
            if self.run(f"document.activeElement.matches({selector!r})"):
                return
            self.press("Tab")
        raise Failure(f"Tab does not lead to {selector}")

    def says(self, text):
        self.wait(f"the word {text!r}", f"document.getElementById('said').textContent.includes({text!r})")


def expect(is_right, text):
    if not is_right:
        raise Failure(text)


def walk(page):
    """Tab leads to every control, which is to be seen."""
    controls = page.run(f"[...document.querySelectorAll({CONTROLS!r})].filter(e => e.checkVisibility() && !e.disabled).length")
    page.run("document.activeElement.blur()")
    for _ in range(controls):
        page.press("Tab")
        seen = page.run("""(() => {
            const e = document.activeElement, s = getComputedStyle(e);
            e.dataset.met = 'yes';
            return [e.outerHTML.slice(0, 80), s.outlineStyle, parseFloat(s.outlineWidth)];
        })()""")
        expect(seen[1] != "none" and seen[2] >= 2, f"focus is not to be seen: {seen}")
    missed = page.run(f"""[...document.querySelectorAll({CONTROLS!r})]
        .filter(e => e.checkVisibility() && !e.disabled && !e.dataset.met).map(e => e.outerHTML.slice(0, 80))""")
    expect(not missed, f"Tab does not lead to {missed}")
    expect(controls > 10, f"only {controls} controls")


def names(page):
    """Everything that is told to readers of screens has a name."""
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "link", "image", "table", "region", "dialog", "columnheader", "rowheader"}
    told = [node for node in nodes if not node.get("ignored") and node["role"]["value"] in roles]
    nameless = [node["role"]["value"] for node in told if not node.get("name", {}).get("value", "").strip()]
    expect(not nameless, f"without a name: {nameless}")
    expect(len(told) > 30, f"only {len(told)} nodes")
    headings = [node["name"]["value"] for node in nodes if node["role"]["value"] == "heading" and not node.get("ignored")]
    expect("Bolide" in headings and "Cache" in " ".join(headings), f"headings: {headings}")
    live = page.run("[...document.querySelectorAll('[aria-live]')].map(e => e.id + e.getAttribute('aria-live'))")
    expect(live == ["saidpolite"], f"live regions: {live}")


def acts(page, selector, text):
    """Enter on this element has the server say so."""
    page.focus(selector)
    page.run("document.getElementById('said').textContent = ''")
    page.press("Enter")
    page.says(text)


def work(page):
    """The buttons work by Enter."""
    page.focus("#pause")
    page.press("Enter")
    page.wait("a pause", "document.getElementById('pause').getAttribute('aria-pressed') === 'true'")
    page.sees("paused")
    page.press("Enter")
    page.wait("the page goes on", "document.getElementById('state').textContent === 'live'")
    page.focus("#reload")
    page.press("Enter")
    page.wait("a question", "document.getElementById('confirm').open")
    expect(page.run("document.activeElement.closest('dialog') !== null"), "the question has no focus")
    page.press("Escape")
    page.wait("no question", "!document.getElementById('confirm').open")
    page.focuses("#reload")
    page.press("Enter")
    acts(page, "#yes", "Configuration 2 is in force")
    page.focus("#tag")
    page.send("Input.insertText", text="news")
    acts(page, "#tag", "purged: ")
    page.focus("#purge-all")
    page.press("Enter")
    acts(page, "#yes", "purged: ")
    acts(page, "table button", "starts again")
    page.run("document.getElementById('url').value = 'nonsense'")
    page.focus("#purge-url button")
    page.press("Enter")
    expect(page.run("!document.getElementById('url').checkValidity()"), "nonsense is a URL")


def look(page):
    """Both schemes can be read, in both widths; nothing is cut off."""
    for scheme in ("light", "dark"):
        page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        for name, width in (("wide", 1280), ("narrow", 360)):
            page.size(width, 900)
            faint = page.run(CONTRAST)
            expect(not faint, f"{scheme}: too faint: {faint}")
            over = page.run("document.documentElement.scrollWidth - innerWidth")
            expect(over <= 0, f"{scheme}, {name}: {over} pixels too wide")
            page.size(width, page.run("document.documentElement.scrollHeight"))
            page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            page.shot(f"{scheme}-{name}")
    page.size(1280, 1000)


def main():
    parser = argparse.ArgumentParser()
    for option in ("base", "chromium", "shots"):
        parser.add_argument(f"--{option}", required=True)
    options = parser.parse_args()
    shots = Path(options.shots)
    shots.mkdir(parents=True, exist_ok=True)
    chromium = Chromium(options.chromium, [])
    try:
        page = Console(chromium, shots)
        expect(page.open(options.base) == 200, "the page is not there")
        page.wait("figures", "document.querySelectorAll('.tile').length === 6")
        page.sees("live", "Slow requests", "HTTP/3")
        for step in (names, walk, look, work):
            step(page)
            print(step.__name__)
        expect(not page.complaints, f"the browser complains: {page.complaints}")
        expect(not page.broken and not page.failed, f"{page.broken} {page.failed}")
    except Failure as failure:
        print(failure, file=sys.stderr)
        sys.exit(1)
    finally:
        chromium.close()


main()
