"""Owns: mistakes made of the reference: every directive in every block.

With too few and too many words, twice, as a block, and with values of every kind in place of each
of its own. The rows are read from docs/reference; single directives that only Bolide has are known
by nginx's not knowing them. Each text is tested by both programs (-t). Unless all are asked for,
one in FORMS is tried of the wrong numbers of words, one in SHARE of the values, and one in PLACES
of the blocks that a directive may not be in.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from zlib import crc32

from ..judge import Judge
from ..program import Program
from .odd_texts import ODD, Files

FORMS = 5
SHARE = 160
PLACES = 15
# Pages about what the nginx that is compared does not have.
OWN = (
    "README",
    "acme",
    "brotli",
    "cluster",
    "geoip",
    "more_headers",
    "otel",
    "page_cache",
    "page_litespeed",
    "php_pool",
    "zstd",
)
KINDS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
REFERENCE = Path(__file__).parents[3] / "docs/reference"
ROW = re.compile(
    r"^## (\S+)\n.*?^- in: (.*?)\n- arguments: (.*?)\n.*?^```nginx\n(.*?)\n```", re.M | re.S
)

HEAD = "@USER@ @PID@ error_log @LOGS@/start.log;\n"
LISTEN = "listen 127.0.0.1:@P0@;"
AROUND = "http { access_log off; server { " + LISTEN + " } }\n"
HTTP = HEAD + "events {} http { access_log off;"
SERVER = HTTP + " server { " + LISTEN
BLOCKS = {
    "main": HEAD + "%s\nevents {}\n" + AROUND,
    "events": HEAD + "events {\n%s\n}\n" + AROUND,
    "http": HTTP + "\n%s\nserver { " + LISTEN + " } }\n",
    "server": SERVER + "\n%s\n} }\n",
    "location": SERVER + " location /l {\n%s\n} } }\n",
    "if in location": SERVER + " location /l { if ($args) {\n%s\n} } } }\n",
    "if in server": SERVER + " if ($args) {\n%s\n} } }\n",
    "limit_except": SERVER + " location /l { limit_except GET {\n%s\n} } } }\n",
    "upstream": HTTP + " upstream u { server 127.0.0.1:@P1@;\n%s\n} server { " + LISTEN + " } }\n",
}
# Where the words of a directive are tried, the first of these that allows it.
PREFERRED = (
    "http",
    "server",
    "location",
    "main",
    "events",
    "upstream",
    "limit_except",
    "if in location",
    "if in server",
    "php_pool",
)

# Words of every kind, good for one directive and bad for another.
WORD = re.compile(r"""\"(?:\\.|[^\"\\])*\"|'[^']*'|\S+""")
VALUES = WORD.findall(r"""
    "" on off ON maybe 0 1 2 7 64 100 600 -1 -0 +1 1k 4K 1m 1g 8G k 1kk 1.5 10x 0x10 1ms 1s
    1m30s 30s1m 1d 1w 1M 1y "1m 30s" 25d 100y 2147483647 2147483648 4294967295 4294967296
    9223372036854775807 9223372036854775808 99999999999999999999 9223372036854775807k none
    default auto always all any $nothing $uri a$uri $ a$ ${uri ${uri}b $1 a=b = a= @HERE@/path
    a/b unix:@HERE@/s unix: 127.0.0.1 127.0.0.1:80 127.0.0.1/33 [::1]:80 ::1 300.0.0.1
    localhost:9 nohost.invalid ~( ~a ( ^a$ * *.a text/html utf-8 GET X-A 200 404 99 @a http://a/
    zone=a:1m zone=a keys_zone=a:1m a:1m 'a b' "a\"b" @PLAIN@
""")

# Examples whose files or names are not there.
EXAMPLES = {
    "client_body_temp_path": "client_body_temp_path @HERE@/bodies;",
    "fastcgi_cache_path": "fastcgi_cache_path @HERE@/php levels=1:2 keys_zone=PHP:1m inactive=60m;",
    "fastcgi_temp_path": "fastcgi_temp_path @HERE@/answers;",
    "pid": "pid @HERE@/pid;",
}


class Row:
    """A directive, as the reference has it."""

    def __init__(self, name: str, places: str, arguments: str, example: str) -> None:
        self.name, self.places = name, places.split(", ")
        self.block = arguments.endswith("block")
        counts = arguments.removesuffix(" and a block").replace("none", "0")
        least, _, most = counts.partition(" to ")
        self.least = int(least.split()[0])
        self.most = 99 if "more" in least else int(most or self.least)
        # nginx makes directories when it tests, so they are to be where the test is.
        self.example = EXAMPLES.get(name, re.sub(r"/var/(?:\w+/)*(\w+)", r"@HERE@/\1", example))

    def takes(self, count: int) -> bool:
        """Whether it may have so many arguments."""
        return self.least <= count <= self.most

    def words(self) -> list[str]:
        """The arguments of the example, none when it is more than one plain line."""
        word = r"\"[^\"]*\"|'[^']*'|[^\s;{}\"']\S*?"
        found = re.fullmatch(rf"{re.escape(self.name)}((?:\s+(?:{word}))*);", self.example)
        return re.findall(r"\"[^\"]*\"|'[^']*'|\S+", found[1]) if found else []


def rows() -> Iterator[Row]:
    """All directives that nginx may have."""
    for page in sorted(REFERENCE.glob("*.md")):
        if page.stem not in OWN:
            yield from (Row(*match) for match in ROW.findall(page.read_text()))


def forms(row: Row) -> Iterator[str]:
    """What is tried of a directive in one block whatever its values are."""
    name, end = row.name, " { }" if row.block else ";"
    for count in {0, 1, 2, row.least - 1, row.least, min(row.most, 8), min(row.most, 8) + 1} - {-1}:
        yield name + " a" * count + end
    yield f"{name} a{';' if row.block else ' { }'}"
    yield name
    yield row.example
    yield f"{row.example} {row.example}"
    if words := row.words():
        written = " ".join([name, *words])
        yield from (f"{written} {{ }}", f"{written} {{", written)


def with_values(row: Row) -> Iterator[str]:
    """The directive with each value in each place."""
    name, end, words = row.name, " { }" if row.block else ";", row.words()
    for value in VALUES:
        # How long a type may be is a matter of nginx's tables: it must not go by where the test is.
        if name.endswith("_types"):
            value = value.replace("@HERE@", "")
        if row.takes(1):
            yield f"{name} {value}{end}"
        if words and row.takes(len(words) + 1):
            yield " ".join([name, *words, value]) + ";"
        if len(words) > 1:
            for index in range(len(words)):
                yield " ".join([name, *words[:index], value, *words[index + 1 :]]) + ";"


def chosen(texts: Iterator[str], share: int) -> Iterator[str]:
    """One in `share` of these, the same ones each time."""
    return (text for text in texts if crc32(text.encode()) % share == 0)


def cases(thorough: bool = False) -> dict[str, str]:
    """The texts by their keys, without repetitions."""
    seen: dict[str, str] = {}
    for row in rows():
        for place, block in BLOCKS.items():
            chance = crc32(f"{place}: {row.name}".encode())
            if not thorough and place not in row.places and chance % PLACES:
                continue
            seen.setdefault(f"{place}: {row.example}", block % row.example)
        place = next(place for place in PREFERRED if place in row.places)
        if place == "php_pool":
            continue
        for text in (
            *chosen(forms(row), 1 if thorough else FORMS),
            *chosen(with_values(row), 1 if thorough else SHARE),
        ):
            seen.setdefault(f"{place}: {text}", BLOCKS[place] % text)
    return seen


def prepared(program: Program, prefix: Path, text: str, files: Files) -> Path:
    """Writes a configuration for a new directory `prefix`, and what stands beside it."""
    # nginx makes directories, and later tests would find them.
    shutil.rmtree(prefix, ignore_errors=True)
    (prefix / "logs").mkdir(parents=True)
    for name, inside in files.items():
        (prefix / name).parent.mkdir(exist_ok=True)
        (prefix / name).write_text(inside, newline="")
    conf = (prefix if files else program.home) / f"{prefix.name}.conf"
    # By itself nginx would give the directories to a user without rights.
    for mark, line in (("@USER@", "user root;"), ("@PID@", "pid pid;")):
        text = text.replace(mark, "" if re.search(rf"\b{line.split()[0]}\b", text) else line)
    expanded = program.expand(text.replace("@HERE@", str(prefix)))
    for kind in KINDS:
        if f"{kind}_temp_path" in text:
            expanded = expanded.replace(f" {kind}_temp_path {program.home}/temp-{kind};", "", 1)
    conf.write_bytes(expanded.encode("utf-8", "surrogateescape"))
    return conf


def complaint(program: Program, text: str, files: Files) -> list[str]:
    """How a program ends and what it says up to the first mistake, as Bolide goes on."""
    prefix = program.home / "generated-0"
    conf = prepared(program, prefix, text, files)
    command = program.command(conf, "-t")
    command[command.index("-p") + 1] = f"{prefix}/"
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        close_fds=False,
        timeout=60,
        cwd=prefix,
    )
    said = done.stderr.decode("utf-8", "surrogateescape").replace(str(prefix), "PREFIX")
    said = program.normalise(said).replace(conf.name, "mistake.conf")
    return [f"exit {done.returncode}", *first_mistake(said)]


def first_mistake(text: str) -> Iterator[str]:
    """The lines without those of remedies and of further mistakes."""
    ended = False
    for line in text.splitlines():
        if not line.startswith("  help:") and not (ended and "[emerg]" in line):
            yield line
        ended |= "[emerg]" in line


def is_own(key: str, said: Sequence[str]) -> bool:
    """Whether it is about a directive that nginx, which said this, does not know."""
    name = re.match(r"generated: [^:]*: (\w*)", key)
    return name is not None and f'SERVER: [emerg] unknown directive "{name[1]}"' in said[1]


def wanted(only: str, thorough: bool) -> list[tuple[str, str, Files]]:
    """(key, text, files) of all, or of the odd texts or the directives whose name is `only`."""
    found: list[tuple[str, str, Files]] = []
    for key, text in cases(thorough).items():
        if only in ("", "generated") or re.match(rf"[^:]*: {only}\b", key):
            found.append((f"generated: {key}", text, {}))
    if only in ("", "odd"):
        found += [(f"odd: {name}", text, files) for name, text, files in ODD]
    return found


def compare_generated(
    programs: Sequence[Program], judge: Judge, rows: Sequence[tuple[str, str, Files]]
) -> None:
    """Tests these with both programs."""
    for key, text, files in rows:
        seen = [complaint(program, text, files) for program in programs]
        if key.startswith("odd: ") or not is_own(key, seen[0]):
            judge.compare(key, *seen)
