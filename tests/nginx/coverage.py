"""Owns: that every directive is tried with requests.

The rows of docs/reference are looked for in the configurations that are compared, and in the texts
of tests/ where only those can send what is needed (HTTP/2 and 3, reloads, clocks). What nginx does
not know stands in TESTED. Three things are asked of each: an effect (it stands somewhere), what
inner blocks take over (it stands in an outer block, and again in an inner one), and mistakes, which
mistakes/generated.py makes of every row but those that only Bolide has.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from .mistakes.generated import OWN, REFERENCE
from .text import words

TESTS = Path(__file__).parents[1]
TOKEN = re.compile(
    r"\s+|#[^\n]*|(\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')|([;{}])|((?:\$\{|\\.|[^\s;{}])+)", re.S
)
# Blocks whose lines are no directives.
TABLES = {"types", "map", "geo", "geoip2", "split_clients", "charset_map"}
LEVELS = {
    "http": 1,
    "server": 2,
    "location": 3,
    "if in server": 3,
    "if in location": 4,
    "limit_except": 4,
}
# What stands before the workers and their requests, or is read and changes nothing: that it is
# taken is all its effect, and mistakes/generated.py tries that. Newer than the nginx that is
# compared: what is not known there.
ONLY_TAKEN = set(
    words("""
        accept_mutex accept_mutex_delay worker_aio_requests epoll_events master_process lock_file
        thread_pool pcre_jit timer_resolution debug_points ssl_engine ssl_object_cache_inheritable
        quic_bpf client_body_early_read fastcgi_socket_rcvbuf fastcgi_socket_sndbuf
        proxy_socket_rcvbuf proxy_socket_sndbuf uwsgi_socket_rcvbuf uwsgi_socket_sndbuf
        scgi_socket_rcvbuf scgi_socket_sndbuf grpc_socket_rcvbuf grpc_socket_sndbuf ssl_ocsp
        ssl_ocsp_cache ssl_ocsp_responder ssl_ech_file
    """)
)
# One value holds for the whole server, or for a socket; or a block is a list's end.
ALONE = {
    "listen",
    "server_name",
    "server",
    "http",
    "location",
    "include",
    "internal",
    "alias",
    "proxy_pass",
    "fastcgi_pass",
    "uwsgi_pass",
    "scgi_pass",
    "grpc_pass",
}

# Where nginx cannot be asked what inner blocks take over: the tests of ours that show it.
TESTED = {
    "fastcgi_store": (
        "store.rs",
        "fastcgi_store_writes_files_where_the_innermost_block_configures",
    ),
    "fastcgi_store_access": (
        "store.rs",
        "fastcgi_store_writes_files_where_the_innermost_block_configures",
    ),
    "proxy_store_access": ("store.rs", "a_whole_response_to_get_is_a_file_with_its_time"),
    # With root's rights every file can be read, and answers do not show permissions.
    "dav_access": ("dav.rs", "a_file_is_there_at_once_and_whole"),
    "apache_proxy": (
        "htaccess_reach.rs",
        "a_rule_proxies_only_to_servers_that_the_configuration_allows",
    ),
    "http3_alt_svc": ("h3.rs", "the_port_of_h3_may_be_one_that_clients_know"),
    "apache_handler": ("apache_handler.rs", "the_innermost_block_names_locations_for_handlers"),
    "apache_directory": ("htaccess.rs", "blocks_add_directives_for_directories"),
    "apache_htaccess": ("htaccess.rs", "the_innermost_block_decides_whether_files_are_read"),
    "fastcgi_cache_purge": ("cache.rs", "the_innermost_block_decides_which_clients_may_purge"),
    "proxy_cache_purge": (
        "proxy/caching.rs",
        "the_innermost_block_decides_which_clients_may_purge",
    ),
    **{
        f"{family}_cache_purge": ("uwsgi.rs", "the_innermost_block_decides_which_clients_may_purge")
        for family in ("uwsgi", "scgi")
    },
    **{
        f"{family}_ssl_{name}": (
            "tls_origins.rs",
            f"{family}_ssl_directives_apply_where_the_innermost_block_has_them",
        )
        for family in ("uwsgi", "grpc")
        for name in words("""
            name server_name session_reuse protocols ciphers conf_command verify verify_depth
            trusted_certificate crl certificate certificate_key certificate_cache password_file
        """)
    },
}


# Above the nodes of a tree: the names of the blocks around a directive, outermost first, and which.
Around = tuple[tuple[str, int], ...]


class Row:
    """A directive, as the reference has it."""

    def __init__(self, page: str, name: str, places: list[str], inheritance: str) -> None:
        self.page, self.name, self.places, self.inheritance = page, name, places, inheritance

    def is_inherited(self) -> bool:
        """Whether inner blocks take it over."""
        levels = {LEVELS[place] for place in self.places if place in LEVELS}
        return len(levels) > 1 and self.name not in ALONE and "block only" not in self.inheritance


def rows() -> Iterator[Row]:
    """All directives of the reference."""
    shape = re.compile(
        r"^## (\S+)\n.*?^- in: (.*?)\n- arguments: .*?\n- inheritance: (.*?)\n", re.M | re.S
    )
    for page in sorted(REFERENCE.glob("*.md")):
        for name, places, inheritance in shape.findall(page.read_text()):
            yield Row(page.stem, name, places.split(", "), inheritance)


def directives(text: str) -> Iterator[tuple[str, Around]]:
    """Each directive and the blocks around it."""
    around: list[tuple[str, int]] = []
    words: list[str] = []
    serial = 0
    for match in TOKEN.finditer(text):
        quoted, mark, bare = match.groups()
        if quoted or bare:
            words.append(quoted or bare)
        elif mark == "}":
            words = []
            if around:
                around.pop()
        elif mark:
            if words and not (around and around[-1][0] in TABLES):
                yield words[0], tuple(around)
            if mark == "{":
                serial += 1
                around.append((words[0] if words else "", serial))
            words = []


def seen(configurations: Iterable[str]) -> tuple[set[str], set[str]]:
    """Names that stand anywhere, and those that stand both in a block and further inside it."""
    there: set[str] = set()
    again: set[str] = set()
    for text in configurations:
        places: dict[str, list[Around]] = {}
        for name, around in directives(text):
            there.add(name)
            places.setdefault(name, []).append(around)
        again |= {name for name, found in places.items() if is_nested(found)}
    return there, again


def is_nested(found: list[Around]) -> bool:
    """Whether one of these places lies in another."""
    return any(
        len(inner) > len(outer) and inner[: len(outer)] == outer
        for outer in found
        for inner in found
    )


def strings() -> Iterator[str]:
    """What stands in the tests, by file: configurations are parts of it."""
    for path in TESTS.rglob("*"):
        if path.suffix in (".rs", ".conf"):
            yield path.read_text()


def is_shown(name: str) -> bool:
    """Whether the test that is said to show what blocks take over has the directive twice."""
    file, test = TESTED.get(name, ("main.rs", ""))
    _, found, rest = (TESTS / file).read_text().partition(f"\nfn {test}() {{\n")
    return bool(found) and len(re.findall(rf"\b{name}\b", rest.partition("\n}\n")[0])) > 1


def gaps(configurations: Iterable[str]) -> list[str]:
    """Lines about rows that nothing tries."""
    there, again = seen(configurations)
    texts = list(strings())
    found = []
    for row in rows():
        if row.name in ONLY_TAKEN:
            continue
        shape = re.compile(rf"(?<![\w$]){re.escape(row.name)}(?=[\s{{;])")
        if row.name not in there and not any(map(shape.search, texts)):
            found.append(f"NO EFFECT {row.page}: {row.name}")
        is_asked = row.page not in OWN and row.is_inherited()
        if is_asked and row.name not in again and not is_shown(row.name):
            found.append(f"NO INHERITANCE {row.page}: {row.name}")
    return found
