"""Owns: people who visit a WordPress behind the page cache, and what each of them has to see.

    visitors.py plugin|preset --base URL --cert FILE --chromium PATH --shots DIR [--flag FLAG]...

Each step prints a line; the first that fails ends the program with status 1, what was seen and a
picture of it. Pictures of the steps are in DIR, for other persons to look at.
"""
import argparse
import html
import http.client
import json
import random
import re
import ssl
import sys
import threading
import time
import urllib.parse
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from chromium import Chromium, Failure  # noqa: E402

PASSWORD = "correct horse battery"
PHONE = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/128.0 Mobile Safari/537.36"
CACHED = "x-litespeed-cache"


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failure(f"{what}: {seen!r} instead of {wanted!r}")


class Answer:
    def __init__(self, reply, path):
        self.path, self.status, self.fields = path, reply.status, reply.msg
        self.text = reply.read().decode("utf-8", "replace")
        self.cached = reply.getheader(CACHED, "")


class Visitor:
    """Somebody without a window: one connection, cookies, and nothing kept."""

    def __init__(self, options, name="somebody", agent="A visitor's program"):
        self.base = urllib.parse.urlsplit(options.base)
        self.tls = ssl.create_default_context(cafile=options.cert)
        self.name, self.agent, self.cookies, self.connection = name, agent, {}, None

    def ask(self, path, form=None, method=None, **fields):
        """A GET, or a POST of a form's values or of a text."""
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(self.base.hostname, self.base.port, context=self.tls, timeout=60)
        fields["User-Agent"] = self.agent
        if self.cookies:
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        body = form
        if isinstance(form, dict):
            body = urllib.parse.urlencode(form)
            fields["Content-Type"] = "application/x-www-form-urlencoded"
        self.connection.request(method or ("GET" if form is None else "POST"), path, body, fields)
        answer = Answer(self.connection.getresponse(), path)
        for line in answer.fields.get_all("Set-Cookie", []):
            pair, *attributes = line.split(";")
            name, _, value = pair.partition("=")
            is_over = any(a.strip().lower() == "max-age=0" for a in attributes)
            if is_over or value in ("", "deleted"):
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return answer

    def log_in(self, user):
        self.ask("/wp-login.php")
        answer = self.ask("/wp-login.php", {"log": user, "pwd": PASSWORD, "wp-submit": "Log In", "testcookie": "1"})
        expect(f"the status when {user} logs in", answer.status, 302)
        return self

    def rest(self, path, method="POST", **values):
        nonce = self.ask("/wp-admin/admin-ajax.php?action=rest-nonce").text
        fields = {"X-WP-Nonce": nonce, "Content-Type": "application/json"}
        answer = self.ask(f"/wp-json/wp/v2/{path}", json.dumps(values), method, **fields)
        if answer.status >= 400:
            raise Failure(f"{method} {path}: {answer.status} {answer.text[:300]}")
        return json.loads(answer.text)

    def buy(self, count):
        for _ in range(count):
            expect("the status when something is put into the cart", self.ask("/", {"cart": "add"}).status, 303)
        return self


def links(text, base):
    """Paths of this site that a page leads to."""
    found = re.findall(r"""<a\s[^>]*?href=["']([^"']+)""", text)
    found += re.findall(r"""<link rel="alternate" type="application/rss\+xml"[^>]*href=["']([^"']+)""", text)
    for link in map(html.unescape, found):
        url = urllib.parse.urlsplit(urllib.parse.urljoin(base, link))
        if f"{url.scheme}://{url.netloc}" == base and not re.match("/wp-(admin|login|json)", url.path) \
                and "replytocom" not in url.query:
            yield url.path + (f"?{url.query}" if url.query else "")


class Day:
    """What all parts share: the site, a browser, and strangers."""

    def __init__(self, options):
        self.options, self.base, self.shots = options, options.base.rstrip("/"), Path(options.shots)
        self.shots.mkdir(parents=True, exist_ok=True)
        self.chromium = Chromium(options.chromium, ["--disable-quic", *options.flag])
        self.guest, self.owner, self.reader = (self.chromium.visitor(self.shots) for _ in range(3))

    def stranger(self, **how):
        return Visitor(self.options, **how)

    def open(self, page, path, cached=None, status=200):
        expect(f"the status of {path}", page.open(self.base + path), status)
        if cached is not None:
            expect(f"what the cache did for {path}", page.fields.get(CACHED, ""), cached)

    def log_in(self, page, user):
        page.open(self.base + "/wp-login.php")
        # The page puts the cursor where it wants it, a little late.
        page.focuses("#user_login")
        page.type("#user_login", user)
        page.type("#user_pass", PASSWORD)
        page.click_to("#wp-submit")

    def is_kept(self, path, **how):
        """The first of two strangers may have to wait for WordPress, the second does not."""
        self.stranger(**how).ask(path)
        answer = self.stranger(**how).ask(path)
        expect(f"what the cache did for {path}", answer.cached, "hit")
        return answer


class Plugin(Day):
    """With the plugin that speaks LSCache."""

    POST = "/observation-3/"
    # Where the post is to be read of, beside its own page.
    LISTS = ["/", "/feed/", "/category/meteors/", "/category/meteors/feed/", "/tag/faint/", "/author/editor/"]

    def a_stranger_is_shown_what_is_kept(self):
        self.stranger().ask("/")
        self.open(self.guest, "/", "hit")
        self.guest.sees("Bolide's site", "Observation 8", "Hello, stranger!", "In your cart: 0")
        self.guest.shot("01-stranger")
        link = "[...document.querySelectorAll('h2 a')].find(a => a.textContent.includes('Observation 8'))"
        self.stranger().ask("/observation-8/")
        self.guest.after_loading(lambda: self.guest.run(f"{link}.click()"))
        expect("what the cache did for a click", self.guest.fields.get(CACHED), "hit")
        self.guest.sees("Seen in the night, number 8.", "I saw number 8 too.")
        self.guest.shot("02-post")

    def telephones_have_copies_of_their_own(self):
        wide, small = self.stranger(), self.stranger(agent=PHONE)
        for _ in range(2):
            for visitor, copy in ((wide, "desktop"), (small, "mobile")):
                answer = visitor.ask("/sample-page/")
                if f"Made as a {copy} copy" not in answer.text:
                    raise Failure(f"no {copy} copy: {answer.text[:300]}")
        expect("what the cache did for a telephone", answer.cached, "hit")
        phone = self.chromium.visitor(self.shots)
        phone.send("Emulation.setUserAgentOverride", userAgent=PHONE)
        phone.send("Emulation.setDeviceMetricsOverride", width=412, height=900, deviceScaleFactor=1, mobile=True)
        self.open(phone, "/sample-page/", "hit")
        phone.sees("Made as a mobile copy")
        phone.shot("03-telephone")

    def carts_are_their_owners_alone(self):
        p = self.guest
        self.open(p, "/")
        for count in (1, 2):
            p.click_to("#shop button")
            p.sees(f"In your cart: {count}")
        self.open(p, "/")
        self.open(p, "/", "hit")
        p.sees("In your cart: 2")
        p.shot("04-cart")
        other = self.chromium.visitor(self.shots)
        self.open(other, "/", "hit")
        other.sees("In your cart: 0")
        other.click_to("#shop button")
        other.sees("In your cart: 1")
        # Both look at the same page of the cache, and each sees the own cart in it.
        for page, count in ((other, 1), (p, 2), (other, 1)):
            self.open(page, "/", "hit")
            page.sees(f"In your cart: {count}")

    def who_logs_in_has_pages_of_her_own(self):
        p = self.owner
        self.log_in(p, "editor")
        p.sees("Dashboard", "Howdy, editor")
        expect("what the cache did for the dashboard", p.fields.get(CACHED, ""), "")
        # What the dashboard still posts when it is left drops what is kept for her.
        for _ in range(20):
            self.open(p, "/")
            p.sees("Howdy, editor", "Hello, editor!")
            if p.fields.get(CACHED) == "hit,private":
                break
        expect("what the cache did for the editor", p.fields.get(CACHED), "hit,private")
        p.has("#wpadminbar")
        p.shot("05-private-bar")
        self.log_in(self.reader, "reader-one")
        for cached in ("miss", "hit"):
            self.open(self.reader, "/", cached)
            self.reader.sees("Hello, Reader-one!")
        self.reader.shot("06-reader")
        # What another reader sees is the same copy with another greeting.
        another = self.stranger().log_in("reader-two")
        answer = another.ask("/")
        expect("what the cache did for another reader", answer.cached, "hit")
        if "Hello, Reader-two!" not in answer.text or "Reader-one" in answer.text:
            raise Failure(f"another reader sees {answer.text[:600]}")
        # A page with a form names its reader, and is hers.
        expect("what the cache did for her", another.ask(self.POST).cached, "miss")
        expect("what the cache did for her", another.ask(self.POST).cached, "hit,private")
        for who in (self.stranger(), another):
            if re.search("wpadminbar|Howdy", who.ask("/").text):
                raise Failure("somebody else sees the bar")

    def an_edited_post_is_new_everywhere_at_once(self):
        lists = [self.POST, *self.LISTS]
        for path in lists:
            if "Observation 3" not in self.is_kept(path).text and path not in ("/", "/feed/"):
                raise Failure(f"{path} does not have the post")
        for path in ("/observation-4/", "/author/ada/"):
            self.is_kept(path)
        p = self.owner
        number = p.run(f"fetch('{self.base}/wp-json/wp/v2/posts?slug=observation-3').then(r => r.json()).then(j => j[0].id)")
        p.open(f"{self.base}/wp-admin/post.php?post={number}&action=edit")
        p.has(".editor-post-title__input")
        p.wait("no welcome guide",
               "(() => { if (wp.data.select('core/edit-post').isFeatureActive('welcomeGuide')) {"
               "  wp.data.dispatch('core/edit-post').toggleFeature('welcomeGuide'); return false; }"
               "  return !document.querySelector('.components-modal__screen-overlay'); })()")
        p.click(".editor-post-title__input")
        p.run("getSelection().selectAllChildren(document.querySelector('.editor-post-title__input'))")
        p.send("Input.insertText", text="A comet after all")
        p.wait("the title", "wp.data.select('core/editor').getEditedPostAttribute('title') === 'A comet after all'")
        p.click(".editor-post-publish-button")
        p.sees("Post updated.")
        p.shot("07-edited")
        stranger = self.stranger()
        for path in lists:
            answer = stranger.ask(path)
            # The front page has the newest five alone, but was told to look.
            has_it = "A comet after all" in answer.text
            if answer.cached != "miss" or "Observation 3" in answer.text or not has_it and path not in ("/", "/feed/"):
                raise Failure(f"{path} ({answer.cached}) is as it was")
            expect(f"what the cache did for {path}", stranger.ask(path).cached, "hit")
        # What has nothing to do with it stayed.
        for path in ("/observation-4/", "/author/ada/"):
            expect(f"what the cache did for {path}", stranger.ask(path).cached, "hit")
        self.open(self.guest, self.POST)
        self.guest.sees("A comet after all")
        self.guest.shot("08-edited")

    def a_comment_is_the_writers_until_it_is_approved(self):
        before = self.is_kept(self.POST).text
        p = self.chromium.visitor(self.shots)
        self.open(p, self.POST)
        p.type("#comment", "A fine comet, I must say.")
        p.type("#author", "Caroline")
        p.type("#email", "caroline@example.org")
        p.run("document.querySelector('#wp-comment-cookies-consent').checked = true")
        p.click_to("#submit")
        p.sees("Your comment is awaiting moderation", "A fine comet, I must say.")
        p.shot("09-pending")
        self.open(p, self.POST, "")
        expect("the name in the form", p.run("document.querySelector('#author').value"), "Caroline")
        answer = self.stranger().ask(self.POST)
        expect("what the cache did for a stranger", answer.cached, "hit")
        if answer.text != before or "Caroline" in answer.text:
            raise Failure("a stranger sees what is for its writer")
        self.is_kept("/comments/feed/")
        p = self.owner
        p.open(self.base + "/wp-admin/edit-comments.php")
        p.sees("A fine comet, I must say.")
        p.run("document.querySelectorAll('.row-actions').forEach(e => e.style.left = 0)")
        p.rests()
        p.click("tr.unapproved .approve a")
        p.wait("no unapproved comment", "!document.querySelector('tr.unapproved')")
        # The page shows the comment as approved before WordPress has answered.
        p.rests()
        for path in (self.POST, "/comments/feed/"):
            answer = self.stranger().ask(path)
            if answer.cached != "miss" or "A fine comet, I must say." not in answer.text:
                raise Failure(f"{path} ({answer.cached}) does not have the comment")
            if "caroline@example.org" in answer.text or 'value="Caroline"' in answer.text:
                raise Failure(f"{path} says more of her than she wrote")

    def a_new_post_is_in_all_lists_and_gone_when_it_is_thrown_away(self):
        lists = ["/", "/feed/", "/category/uncategorized/", "/author/editor/"]
        writer = self.stranger().log_in("editor")
        for path in lists:
            self.is_kept(path)
        post = writer.rest("posts", title="By a program", status="publish", content="New.")
        for path in lists:
            if "By a program" not in self.stranger().ask(path).text:
                raise Failure(f"{path} does not have the new post")
        self.is_kept("/by-a-program/")
        writer.rest(f"posts/{post['id']}", "DELETE")
        for path in lists:
            if "By a program" in self.stranger().ask(path).text:
                raise Failure(f"{path} still has the post")
        expect("the status of the old page", self.stranger().ask("/by-a-program/").status, 404)
        # What all pages show takes all pages away.
        self.is_kept("/sample-page/")
        writer.rest("settings", title="Bolide's other site")
        for path in ("/sample-page/", "/", "/feed/"):
            answer = self.stranger().ask(path)
            if answer.cached != "miss" or "other site" not in html.unescape(answer.text).replace("’", "'"):
                raise Failure(f"{path} ({answer.cached}) has the old name of the site")

    def nobody_who_comes_after_a_change_sees_what_was_before_it(self):
        """Readers do not stop while a post is changed again and again."""
        writer = self.stranger().log_in("editor")
        post = writer.rest("posts", title="Edition 0", status="publish", content="In print.", slug="editions")
        editions, is_over, wrong, count = [0], threading.Event(), [], Counter()

        def read(path, visitor):
            try:
                while not is_over.is_set():
                    least = editions[-1]
                    answer = visitor.ask(path)
                    seen = int(re.search(r"Edition (\d+)", answer.text)[1])
                    count["hit" if answer.cached == "hit" else "miss"] += 1
                    if seen < least or answer.status != 200:
                        wrong.append(f"edition {seen} of {path} ({answer.cached}) after {least} was out")
            except Exception as failure:  # noqa: BLE001 - of another thread, to be told by this one
                wrong.append(f"{path}: {failure!r}")
        readers = [threading.Thread(target=read, args=(path, self.stranger(agent=agent)))
                   for path, agent in (("/editions/", "A"), ("/editions/", "B"), ("/editions/", PHONE), ("/", "C"), ("/feed/", "D"))]
        for reader in readers:
            reader.start()
        try:
            for edition in range(1, 7):
                writer.rest(f"posts/{post['id']}", title=f"Edition {edition}")
                editions.append(edition)
        finally:
            is_over.set()
            for reader in readers:
                reader.join()
        print(f"   {count['hit']} hits and {count['miss']} others while it was changed")
        if wrong or count["hit"] < 20:
            raise Failure("\n".join(wrong[:10]) or str(count))
        writer.rest(f"posts/{post['id']}?force=true", "DELETE")

    def nothing_of_her_is_left_when_she_logs_out(self):
        p = self.owner
        self.open(p, "/")
        p.sees("Howdy, editor")
        p.open(p.run("document.querySelector('#wp-admin-bar-logout a').href"))
        p.sees("You are now logged out.")
        self.is_kept("/")
        self.open(p, "/", "hit")
        p.misses("Howdy", "Hello, editor")
        p.sees("Hello, stranger!")
        self.open(p, "/wp-admin/")
        if "/wp-login.php" not in p.address():
            raise Failure(f"the dashboard is at {p.address()}")

    def a_browser_that_speaks_h3_gets_the_same(self):
        self.is_kept("/observation-6/")
        base = urllib.parse.urlsplit(self.base).netloc
        other = Chromium(self.options.chromium, ["--enable-quic", f"--origin-to-force-quic-on={base}", *self.options.flag])
        try:
            pages = {"h2": self.chromium.visitor(self.shots), "h3": other.visitor(self.shots)}
            for protocol, page in pages.items():
                self.open(page, "/observation-6/", "hit")
                expect("the protocol", page.run("performance.getEntriesByType('navigation')[0].nextHopProtocol"), protocol)
                page.sees("Seen in the night, number 6.", "Hello, stranger!")
        finally:
            other.close()

    def a_crowd_walks_through_the_whole_site(self):
        """Nine visitors, all pages, five times, in any order: WordPress is asked once for each copy."""
        crowd = [(self.stranger(name=f"stranger {n}"), "desktop", "stranger", 0) for n in range(3)]
        crowd += [(self.stranger(name=f"telephone {n}", agent=PHONE), "mobile", "stranger", 0) for n in range(2)]
        crowd += [(self.stranger(name=f"cart of {n}").buy(n), "desktop", "stranger", n) for n in (1, 2)]
        crowd += [(self.stranger(name=f"reader-{n}").log_in(f"reader-{n}"), "desktop", f"Reader-{n}", 0) for n in ("one", "two")]
        pages, todo = ["/"], ["/"]
        while todo:
            path = todo.pop(0)
            answer = self.stranger().ask(path)
            expect(f"the status of {path}", answer.status, 200)
            for link in links(answer.text, self.base):
                if link not in pages:
                    pages.append(link)
                    todo.append(link)
        chance, asked = random.Random(1), Counter()
        rounds = []
        for _ in range(5):
            walks, seen = [(who, path) for who in crowd for path in pages], Counter()
            chance.shuffle(walks)
            for (visitor, copy, name, count), path in walks:
                answer = visitor.ask(path)
                expect(f"the status of {path}", answer.status, 200)
                is_hit = answer.cached.startswith("hit")
                seen["hit" if is_hit else "miss"] += 1
                if not is_hit:
                    asked[visitor.name, path] += 1
                if "<body" in answer.text:
                    is_right = f"Made as a {copy} copy" in answer.text and f"Hello, {name}!" in answer.text \
                        and f"In your cart: {count}<" in answer.text and "wpadminbar" not in answer.text \
                        and "<esi:" not in answer.text
                    if not is_right:
                        raise Failure(f"{visitor.name} is shown another's {path} ({answer.cached}): {answer.text}")
            rounds.append(seen)
        total = sum(rounds, Counter())
        ratio = 100 * total["hit"] / total.total()
        print(f"   {len(pages)} pages, {len(crowd)} visitors: " + ", ".join(f"{r['hit']}/{r.total()}" for r in rounds)
              + f" hits; {ratio:.1f} % of {total.total()}, {100 * sum(r['hit'] for r in rounds[1:]) / sum(r.total() for r in rounds[1:]):.2f} % after the first round")
        again = {key: times for key, times in asked.items() if times > 1}
        if len(pages) < 30 or ratio < 85 or again or any(r["miss"] for r in rounds[1:]):
            raise Failure(f"{pages}\n{rounds}, asked again: {again}")

    STEPS = [
        a_stranger_is_shown_what_is_kept, telephones_have_copies_of_their_own, carts_are_their_owners_alone,
        who_logs_in_has_pages_of_her_own, an_edited_post_is_new_everywhere_at_once,
        a_comment_is_the_writers_until_it_is_approved, a_new_post_is_in_all_lists_and_gone_when_it_is_thrown_away,
        nobody_who_comes_after_a_change_sees_what_was_before_it,
        nothing_of_her_is_left_when_she_logs_out, a_browser_that_speaks_h3_gets_the_same, a_crowd_walks_through_the_whole_site,
    ]


class Preset(Day):
    """Without any plugin, by `page_cache_preset wordpress`."""

    def strangers_are_shown_what_is_kept(self):
        for path in ("/", "/observation-1/", "/category/comets/", "/feed/"):
            self.is_kept(path)
        self.open(self.guest, "/", "hit")
        self.guest.sees("Bolide's site", "Observation 8")
        self.guest.shot("01-stranger")
        # Neither the cookie that only asks whether there are cookies nor an advertiser's argument
        # makes another page.
        self.is_kept("/")
        stranger = self.stranger()
        stranger.cookies = {"wordpress_test_cookie": "WP%20Cookie%20check", "_ga": "GA1.1.1"}
        expect("what the cache did", stranger.ask("/?utm_source=letter").cached, "hit")

    def those_whom_wordpress_knows_are_not(self):
        for cookie in ("wordpress_logged_in_0123", "wordpress_sec_0123", "comment_author_0123", "comment_author_email_0123",
                       "wp-postpass_0123", "woocommerce_items_in_cart", "woocommerce_cart_hash", "wp_woocommerce_session_0123"):
            visitor = self.stranger()
            visitor.cookies = {cookie: "1"}
            for path in ("/", "/observation-2/", "/observation-2/"):
                answer = visitor.ask(path)
                expect(f"status and cache for {path} with {cookie}", (answer.status, answer.cached), (200, ""))
        expect("what the cache did for a stranger after them", self.stranger().ask("/observation-2/").cached, "miss")

    def what_does_something_is_not_kept(self):
        rows = [("/wp-login.php", None, 200), ("/wp-admin/", None, 302), ("/wp-admin/admin-ajax.php?action=x", None, 400),
                ("/wp-json/", None, 200), ("/wp-cron.php", None, 200), ("/", {"a": "b"}, 200), ("/?preview=true", None, 200),
                ("/?rest_route=/", None, 200), ("/no/such/page/", None, 404)]
        for path, form, status in rows:
            for _ in range(2):
                answer = self.stranger().ask(path, form)
                expect(f"status and cache for {path}", (answer.status, answer.cached.replace("miss", "")), (status, ""))

    def who_logs_in_sees_the_bar_and_nobody_else_does(self):
        p = self.owner
        self.log_in(p, "editor")
        p.sees("Dashboard")
        for _ in range(2):
            self.open(p, "/", "")
            p.sees("Howdy, editor")
        p.shot("02-private-bar")
        self.is_kept("/")
        self.open(self.guest, "/", "hit")
        self.guest.misses("Howdy")

    def a_comment_is_the_writers_until_it_is_approved(self):
        path, p = "/observation-5/", self.guest
        self.is_kept(path)
        self.open(p, path)
        p.type("#comment", "A fine comet, I must say.")
        p.type("#author", "Caroline")
        p.type("#email", "caroline@example.org")
        p.click_to("#submit")
        p.sees("Your comment is awaiting moderation", "A fine comet, I must say.")
        expect("what the cache did for the writer", p.fields.get(CACHED, ""), "")
        p.shot("03-pending")
        if "Caroline" in self.stranger().ask(path).text:
            raise Failure("a stranger sees what is for its writer")

    STEPS = [
        strangers_are_shown_what_is_kept, those_whom_wordpress_knows_are_not, what_does_something_is_not_kept,
        who_logs_in_sees_the_bar_and_nobody_else_does, a_comment_is_the_writers_until_it_is_approved,
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=("plugin", "preset"))
    for name in ("base", "cert", "chromium", "shots"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--flag", action="append", default=[])
    options = parser.parse_args()
    day = {"plugin": Plugin, "preset": Preset}[options.part](options)
    try:
        for step in day.STEPS:
            start = time.monotonic()
            try:
                step(day)
            except Failure as failure:
                print(f"FAILED {step.__name__}: {failure}", flush=True)
                for name in ("guest", "owner", "reader"):
                    page = getattr(day, name)
                    print(f"   {name} at {page.address()}", flush=True)
                    page.shot(f"failed-{name}")
                return 1
            print(f"ok {step.__name__} ({time.monotonic() - start:.1f} s)", flush=True)
    finally:
        day.chromium.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
