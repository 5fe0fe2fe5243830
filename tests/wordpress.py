"""Owns: what a person does with a fresh WordPress, and what she has to see.

    wordpress.py --base URL --chromium PATH --shots DIR --protocol h2|h3 [--flag FLAG]...

Each step prints a line; the first that fails ends the program with status 1, what was seen and a
picture of it. Pictures of every step are in DIR, for other persons to look at.
"""
import argparse
import json
import struct
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from chromium import Chromium, Failure  # noqa: E402

USER, PASSWORD = "editor", "correct horse battery"
TITLE = "A post with a picture"


def picture(path, width=1600, height=1000):
    """A PNG large enough for WordPress to make smaller ones of it."""
    rows = b"".join(
        b"\0" + b"".join(bytes((x * 255 // width, y * 255 // height, (x ^ y) & 255)) for x in range(width))
        for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


class Person:
    def __init__(self, options):
        self.base, self.shots, self.protocol = options.base.rstrip("/"), Path(options.shots), options.protocol
        self.shots.mkdir(parents=True, exist_ok=True)
        self.chromium = Chromium(options.chromium, options.flag)
        self.owner = self.chromium.visitor(self.shots)
        self.guest = self.chromium.visitor(self.shots)
        self.excused = set()

    def expect(self, page, status, path=None):
        seen = page.run("performance.getEntriesByType('navigation')[0].responseStatus")
        if seen != status:
            raise Failure(f"status {seen} instead of {status} at {page.address()}")
        if path and not page.address().startswith(self.base + path):
            raise Failure(f"at {page.address()} instead of {path}")

    def fetch(self, page, path, **options):
        """What the page's own scripts get from an address: status, type, body."""
        return page.run(f"fetch({json.dumps(self.base + path)}, {json.dumps(options)}).then(async r => "
                        "({status: r.status, type: r.headers.get('content-type'), text: await r.text(), url: r.url}))")

    def rest(self, path, method="GET", **values):
        """A request of the logged-in owner to the REST API."""
        nonce = self.fetch(self.owner, "/wp-admin/admin-ajax.php?action=rest-nonce")["text"]
        body = {"body": json.dumps(values)} if values else {}
        answer = self.fetch(self.owner, path, method=method,
                            headers={"X-WP-Nonce": nonce, "Content-Type": "application/json"}, **body)
        if answer["status"] >= 400:
            raise Failure(f"{method} {path}: {answer['status']} {answer['text'][:300]}")
        return json.loads(answer["text"])

    def write(self, text):
        """Writes into the paragraph with the cursor, until it has the text: the editor may still be drawing it."""
        p = self.owner
        has = ("(() => { const e = document.activeElement && document.activeElement.closest('[data-type=\"core/paragraph\"]');"
               f" return !!e && e.innerText.includes({json.dumps(text)}); }})()")
        for _ in range(10):
            p.send("Input.insertText", text=text)
            for _ in range(20):
                if p.run(has):
                    return
                self.chromium.read(0.1)
                p.take_events()
        raise Failure(f"the paragraph does not take {text!r}")

    # ---- steps -----------------------------------------------------------

    def install_wizard(self):
        """The front page of an empty WordPress leads to the wizard."""
        p = self.owner
        p.open(self.base + "/")
        self.expect(p, 200, "/wp-admin/install.php")
        p.sees("Welcome to the famous five-minute WordPress installation process!")
        p.shot("01-install")
        # What judges the password comes a little later than the page, and judges what is typed from then on.
        p.wait("the judge of passwords", "typeof zxcvbn === 'function'")
        p.type("#weblog_title", "Bolide's site")
        p.type("#user_login", USER)
        p.type("#pass1", PASSWORD)
        p.wait("a judgement of the password", "/short|bad|good|strong/.test(document.querySelector('#pass1').className)")
        p.type("#admin_email", "editor@example.org")
        if p.run("getComputedStyle(document.querySelector('.pw-weak')).display") != "none":
            p.click("#pw_weak, .pw-checkbox")
        p.click_to("#submit")
        p.sees("Success!", "WordPress has been installed")
        p.shot("02-installed")
        # Chromium asks for this by itself, and without tables WordPress sends everybody to the
        # wizard, whose page answers 500 while there are some tables and not all.
        favicon = f"{self.base}/favicon.ico"
        self.excused = {number for number, url in p.asked.items() if url == favicon}

    def log_in(self):
        p = self.owner
        p.open(self.base + "/wp-login.php")
        # The page puts the cursor where it wants it, a little late.
        p.focuses("#user_login")
        p.type("#user_login", USER)
        p.type("#user_pass", "not the password")
        p.click_to("#wp-submit")
        p.sees("The password you entered for the username editor is incorrect")
        p.focuses("#user_pass")
        p.type("#user_pass", PASSWORD)
        p.click_to("#wp-submit")
        self.expect(p, 200, "/wp-admin/")
        p.sees("Dashboard", "Howdy, editor")
        p.shot("03-dashboard")

    def write_a_post_with_a_picture(self):
        """In the editor, with the picture uploaded there."""
        p = self.owner
        p.open(self.base + "/wp-admin/post-new.php")
        p.has(".editor-post-title__input")
        # The editor may offer its guide late, when it has read what its user prefers: it is sent away
        # whenever it comes.
        p.run("(() => { const away = () => {"
              "  if (wp.data.select('core/edit-post').isFeatureActive('welcomeGuide'))"
              "    wp.data.dispatch('core/edit-post').toggleFeature('welcomeGuide'); };"
              " setInterval(away, 50); away(); })()")
        p.wait("no welcome guide", "!document.querySelector('.components-modal__screen-overlay')")
        p.type(".editor-post-title__input", TITLE)
        for text in ("Written in a browser, über Bolide.", "/image"):
            p.press("Enter")
            p.wait("the cursor in a new paragraph", "(() => { const e = document.activeElement;"
                   " return e && e.closest('[data-type=\"core/paragraph\"]') && !e.innerText.trim(); })()")
            self.write(text)
        p.has(".components-autocomplete__result")
        p.press("Enter")
        p.has(".wp-block-image input[type=file]")
        image = self.shots / "sent.png"
        picture(image)
        p.choose_file(".wp-block-image input[type=file]", image)
        p.wait("the uploaded picture", "[...document.querySelectorAll('.wp-block-image img')].some("
               "i => i.src.includes('/wp-content/uploads/') && i.complete && i.naturalWidth > 0)")
        p.shot("04-editor")
        p.click(".editor-post-publish-panel__toggle, .editor-post-publish-button__button")
        p.click(".editor-post-publish-panel .editor-post-publish-button")
        # The panel may have been on its way when it was clicked, or the editor saving: as long as the
        # editor asks, the answer is given again.
        p.wait("the published post",
               "(() => { if (document.body.innerText.includes('is now live.')) return true;"
               "  const free = b => b && !b.disabled && b.getAttribute('aria-disabled') !== 'true'"
               "    && !b.classList.contains('is-busy');"
               "  const last = document.querySelector('.editor-post-publish-panel .editor-post-publish-button');"
               "  const first = document.querySelector('.editor-post-publish-panel__toggle');"
               "  if (free(last) && document.body.innerText.includes('Are you ready to publish')) last.click();"
               "  else if (!last && free(first)) first.click();"
               "  return false; })()")
        p.shot("05-published")

    def read_the_post_as_a_guest(self):
        p = self.guest
        p.open(self.base + "/")
        self.expect(p, 200)
        p.sees("Bolide's site", TITLE)
        p.shot("06-home")
        link = p.run(f"[...document.querySelectorAll('a')].find(a => a.textContent.trim() === {json.dumps(TITLE)}).href")
        p.open(link)
        p.sees("Written in a browser, über Bolide.")
        p.wait("the picture", "[...document.images].some(i => i.currentSrc.includes('/wp-content/uploads/') && i.naturalWidth > 0)")
        widths = p.run("[...document.images].filter(i => i.srcset).map(i => i.srcset.split(',').length)")
        if not widths or max(widths) < 4:
            raise Failure(f"WordPress made no smaller pictures: {widths}")
        p.shot("07-post")

    def comment_as_a_guest(self):
        p = self.guest
        p.type("#comment", "What a fine picture! <b>Bold</b> & \"quoted\".")
        p.type("#author", "A visitor")
        p.type("#email", "visitor@example.org")
        p.click_to("#submit")
        p.sees("Your comment is awaiting moderation", "What a fine picture!")
        p.shot("08-comment")

    def approve_the_comment(self):
        p = self.owner
        p.open(self.base + "/wp-admin/edit-comments.php")
        p.sees("What a fine picture!")
        p.run("document.querySelectorAll('.row-actions').forEach(e => e.style.left = 0)")
        p.rests()
        p.click("tr.unapproved .approve a")
        p.wait("no unapproved comment", "!document.querySelector('tr.unapproved')")
        # The page shows the comment as approved before WordPress has answered.
        p.rests()
        p.shot("09-moderated")
        stranger = self.chromium.visitor(self.shots)
        stranger.open(self.guest.address().split("#")[0].split("&unapproved")[0])
        stranger.sees("A visitor", "What a fine picture!")
        stranger.misses("awaiting moderation")
        self.guests = [stranger]

    def switch_permalinks_on(self):
        p = self.owner
        p.open(self.base + "/wp-admin/options-permalink.php")
        p.click("input[type=radio][value='/%postname%/']")
        p.click_to("#submit")
        p.sees("Permalink structure updated")
        p.shot("10-permalinks")
        status = self.guest.open(self.base + "/a-post-with-a-picture/")
        self.expect(self.guest, 200, "/a-post-with-a-picture/")
        self.guest.sees("Written in a browser, über Bolide.")
        self.guest.shot("11-permalink")
        # The old address and one without the slash lead to the new one.
        for path in ("/?p=4", "/a-post-with-a-picture"):
            answer = self.fetch(self.guest, path)
            if status != 200 or "/a-post-with-a-picture/" not in answer["url"] and path != "/?p=4":
                raise Failure(f"{path} leads to {answer['url']}")
        self.guest.open(self.base + "/?s=picture")
        self.guest.sees(TITLE)
        self.guest.open(self.base + "/category/uncategorized/")
        self.expect(self.guest, 200)
        self.guest.sees(TITLE)

    def read_the_feed(self):
        answer = self.fetch(self.guest, "/feed/")
        if answer["status"] != 200 or "application/rss+xml" not in answer["type"] or f"<title>{TITLE}</title>" not in answer["text"]:
            raise Failure(f"feed: {answer}"[:600])
        answer = self.fetch(self.guest, "/comments/feed/")
        if answer["status"] != 200 or "What a fine picture!" not in answer["text"]:
            raise Failure(f"feed of comments: {answer}"[:600])

    def ask_the_rest_api(self):
        answer = self.fetch(self.guest, "/wp-json/wp/v2/posts?per_page=5&orderby=date")
        titles = [post["title"]["rendered"] for post in json.loads(answer["text"])]
        if answer["status"] != 200 or TITLE not in titles or "application/json" not in answer["type"]:
            raise Failure(f"REST: {answer}"[:600])
        answer = self.fetch(self.guest, "/wp-json/wp/v2/posts/999999")
        if answer["status"] != 404 or json.loads(answer["text"])["code"] != "rest_post_invalid_id":
            raise Failure(f"REST of nothing: {answer}"[:600])
        answer = self.fetch(self.guest, "/wp-json/wp/v2/posts", method="POST", headers={"Content-Type": "application/json"}, body="{}")
        if answer["status"] != 401:
            raise Failure(f"REST without a right: {answer}"[:600])
        media = self.rest("/wp-json/wp/v2/media")
        sizes = media[0]["media_details"]["sizes"]
        self.picture = media[0]["source_url"]
        for size in sizes.values():
            got = self.owner.run(f"fetch({json.dumps(size['source_url'])}).then(r => r.blob()).then(b => createImageBitmap(b)).then(i => [i.width, i.height])")
            if got != [size["width"], size["height"]]:
                raise Failure(f"{size['source_url']} is {got}")
        post = self.rest("/wp-json/wp/v2/posts", "POST", title="By REST", status="publish", content="<p>Made by a program.</p>")
        self.rest(f"/wp-json/wp/v2/posts/{post['id']}", "PUT", content="<p>Changed by a program.</p>")
        self.guest.open(post["link"])
        self.guest.sees("Changed by a program.")
        self.rest(f"/wp-json/wp/v2/posts/{post['id']}?force=true", "DELETE")
        self.guest.open(post["link"])
        self.expect(self.guest, 404)

    def switch_a_plugin_on_and_wait_for_wp_cron(self):
        """The plugin writes a post a little later: from wp-cron, which WordPress asks itself for."""
        p = self.owner
        p.open(self.base + "/wp-admin/plugins.php")
        p.sees("Writes later")
        p.click_to("#activate-writes-later")
        p.sees("Plugin activated.")
        p.shot("12-plugin")
        p = self.guest
        p.wait("the post that wp-cron writes",
               f"fetch({json.dumps(self.base + '/')}).then(r => r.text()).then(t => t.includes('Written by wp-cron'))")
        p.open(self.base + "/written-by-wp-cron/")
        p.sees("It is later now.")
        p.shot("13-cron")
        answer = self.fetch(p, "/wp-cron.php?doing_wp_cron")
        if answer["status"] != 200 or answer["text"]:
            raise Failure(f"wp-cron: {answer}")

    def open_a_page_with_a_password(self):
        page = self.rest("/wp-json/wp/v2/pages", "POST", title="Secret", status="publish", password="sesame", content="<p>The treasure is here.</p>")
        p = self.guest
        p.open(page["link"])
        p.sees("This content is password protected")
        p.misses("The treasure is here.")
        p.type("input[name=post_password]", "wrong")
        p.click_to("input[name=Submit]")
        p.misses("The treasure is here.")
        p.type("input[name=post_password]", "sesame")
        p.click_to("input[name=Submit]")
        p.sees("The treasure is here.")
        p.shot("14-password")

    def miss_a_page(self):
        p = self.guest
        p.open(self.base + "/no/such/page/")
        self.expect(p, 404)
        p.sees("This page could not be found")
        p.shot("15-not-found")

    def use_the_media_library(self):
        p = self.owner
        p.open(self.base + "/wp-admin/upload.php?mode=grid")
        p.wait("the picture in the library", "[...document.querySelectorAll('.attachment img')].some(i => i.naturalWidth > 0)")
        p.shot("16-library")
        p.open(self.base + "/wp-admin/site-health.php")
        p.sees("Site Health")

    def log_out(self):
        p = self.owner
        p.open(self.base + "/wp-admin/")
        link = p.run("document.querySelector('#wp-admin-bar-logout a').href")
        p.open(link)
        p.sees("You are now logged out.")
        p.open(self.base + "/wp-admin/")
        self.expect(p, 200, "/wp-login.php")
        p.shot("17-logged-out")

    def protocols_are_as_wanted(self):
        for page in (self.owner, self.guest):
            own = {name: [url for url in urls if url.startswith(self.base)] for name, urls in page.protocols.items()}
            count = len(own.pop(self.protocol, []))
            others = {name: urls[:3] for name, urls in own.items() if urls}
            if others or count < 20:
                raise Failure(f"{count} answers by {self.protocol}, others: {others}")
            excused = {(number, f"{self.base}/wp-admin/install.php") for number in self.excused}
            broken = [f"{status} {url} for {page.asked.get(number)}"
                      for number, status, url in page.broken if (number, url) not in excused]
            broken += [failed for failed in page.failed if self.base in failed]
            if broken:
                raise Failure(f"broken requests: {broken}")
            print(f"   {count} answers by {self.protocol}")


STEPS = [
    Person.install_wizard, Person.log_in, Person.write_a_post_with_a_picture, Person.read_the_post_as_a_guest,
    Person.comment_as_a_guest, Person.approve_the_comment, Person.switch_permalinks_on, Person.read_the_feed,
    Person.ask_the_rest_api, Person.switch_a_plugin_on_and_wait_for_wp_cron, Person.open_a_page_with_a_password, Person.miss_a_page,
    Person.use_the_media_library, Person.log_out, Person.protocols_are_as_wanted,
]


def main():
    parser = argparse.ArgumentParser()
    for name in ("base", "chromium", "shots", "protocol"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--flag", action="append", default=[])
    person = Person(parser.parse_args())
    try:
        for step in STEPS:
            try:
                step(person)
            except Failure as failure:
                print(f"FAILED {step.__name__}: {failure}")
                for name, page in (("owner", person.owner), ("guest", person.guest)):
                    print(f"   {name} at {page.address()}, failed requests: {page.failed}", flush=True)
                    page.shot(f"failed-{name}")
                return 1
            print(f"ok {step.__name__}", flush=True)
    finally:
        person.chromium.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
