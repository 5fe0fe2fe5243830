"""Trees whose files have bodies searched (mod_substitute), and what is asked of them.

A site is its name, its files by path, and requests, as in sites.py.
"""

PAGE = "<a href=\"http://old.test/\">Old</a>\nfoo bar\nfoofoo FOO.\nlast line without an end: foo"
FILES = {"a.html": PAGE, "a.txt": PAGE, "a.css": PAGE, "empty.html": "", "d/b.html": PAGE, "lines.html": "\n\nfoo\n\n",
         "long.html": "x" * 70000 + "foo" + "y" * 70000 + "\nfoo\n"}
CODED = [("GET", "/a.html", {"Accept-Encoding": "gzip"}), ("GET", "/a.html", {"Accept-Encoding": "br"}),
         ("GET", "/long.html", {"Accept-Encoding": "gzip"}), ("HEAD", "/a.html", {"Accept-Encoding": "gzip"})]
ALL = ["/a.html", "/a.txt", "/a.css", "/empty.html", "/lines.html", "/d/b.html", "/long.html", "/none.html", "/d",
       ("HEAD", "/a.html", {}), ("HEAD", "/a.txt", {})]
ON = "SetOutputFilter SUBSTITUTE\n"


def site(name, text, more=None, requests=ALL):
    return f"substitute-{name}", {".htaccess": text, **FILES, **(more or {})}, requests


SUBSTITUTE = [
    site("plain", ON + "Substitute s/foo/X/\n"),
    site("literal", ON + "Substitute s/o./X/n\n"),
    site("any-case", ON + "Substitute s/foo/X/i\nSubstitute \"s|FOO.|Y|ni\"\n"),
    site("groups", ON + r'Substitute "s/(f)(o+)/[$2$1$0$9]/"' + "\n"),
    site("escapes", ON + r'Substitute "s/foo/\\$0&\\\\n/"' + "\n"),
    site("bar", ON + 'Substitute "s|http://old.test|https://new.test|i"\n'),
    site("blanks", ON + 'Substitute "s/foo bar/a b c/"\n'),
    site("several", ON + "Substitute s/foo/bar/\nSubstitute s/bar/baz/\n"),
    site("quick", ON + "Substitute s/foo/ba/q\nSubstitute s/bafoo/No/q\nSubstitute s/baba/Yes/\nSubstitute \"s/ba bar/Z/\"\n"),
    site("quick-flat", ON + "Substitute s/foo/ba/\nSubstitute s/baba/Yes/q\nSubstitute s/Y/y/\n"),
    site("literal-quick", ON + "Substitute s/foo/ba/nq\nSubstitute s/aba/Yes/n\n"),
    site("begin", ON + "Substitute s/^fo/X/\n"),
    site("begin-again", ON + "Substitute s/^[fo]/X/\n"),
    site("end", ON + "Substitute s/foo$/X/\n"),
    site("dot-all", ON + "Substitute s/foo.*/X/\n"),
    site("line-end", ON + r"Substitute s/\n/+/" + "\n"),
    site("line-end-more", ON + r"Substitute s/o\n/+/" + "\n"),
    site("nothing", ON + "Substitute s/o//\n"),
    site("growing", ON + "Substitute s/o/oo/\n"),
    site("lookaround", ON + "Substitute s/(?<=f)o/0/\n"),
    site("word", ON + r"Substitute s/\bfoo\b/W/" + "\n"),
    site("without-flags", ON + "Substitute s/foo/X\n"),
    site("no-filter", "Substitute s/foo/X/\n"),
    site("no-rule", ON),
    site("set-none", ON + "Substitute s/foo/X/\n<Files a.html>\nSetOutputFilter None\n</Files>\n"),
    site("bad-flag", ON + "Substitute s/foo/X/g\n", requests=["/a.html"]),
    site("bad-regex", ON + "Substitute s/(/X/\n", requests=["/a.html"]),
    site("bad-format", ON + "Substitute foo\n", requests=["/a.html"]),
    site("unfinished", ON + "Substitute s/foo\n", requests=["/a.html"]),
    site("two-words", ON + "Substitute s/foo/a b/\n", requests=["/a.html"]),
    site("unknown-filter-off", "<IfModule mod_substitute.c>\n" + ON + "Substitute s/foo/X/\n</IfModule>\n"),
    site("by-type", "AddOutputFilterByType SUBSTITUTE text/html\nSubstitute s/foo/X/\n"),
    site("by-types", "AddOutputFilterByType SUBSTITUTE text/html text/css\nSubstitute s/foo/X/n\n"),
    site("by-extension", "AddOutputFilter SUBSTITUTE html .css\nSubstitute s/foo/X/\n"),
    site("extension-removed", "AddOutputFilter SUBSTITUTE html css\nSubstitute s/foo/X/\n",
         {"d/.htaccess": "RemoveOutputFilter html\n"}),
    site("extension-replaced", "AddOutputFilter DEFLATE html\nAddOutputFilter SUBSTITUTE html\nSubstitute s/foo/X/\n",
         requests=ALL + CODED[:1]),
    site("inherits", ON + "Substitute s/foo/up/\n", {"d/.htaccess": "Substitute s/foo/down/\nSubstitute s/up/Up/\n"}),
    site("inherits-before", ON + "SubstituteInheritBefore on\nSubstitute s/foo/up/\n",
         {"d/.htaccess": "Substitute s/foo/down/\nSubstitute s/up/Up/\n"}),
    site("inherits-before-below", ON + "Substitute s/foo/up/\n",
         {"d/.htaccess": "SubstituteInheritBefore On\nSubstitute s/foo/down/\nSubstitute s/up/Up/\n"}),
    site("sections", ON + "Substitute s/foo/all/\n<Files a.html>\nSubstitute s/foo/file/\n</Files>\n"
         "<If \"%{QUERY_STRING} == 'x'\">\nSubstitute s/foo/cond/\n</If>\n", requests=[*ALL, "/a.html?x", "/d/b.html?x"]),
    site("deflate", "SetOutputFilter SUBSTITUTE;DEFLATE\nSubstitute s/foo/X/\n", requests=ALL + CODED),
    site("deflate-by-type", "AddOutputFilterByType SUBSTITUTE;DEFLATE text/html\nSubstitute s/foo/X/\n",
         requests=ALL + CODED),
    site("inflate", "AddOutputFilterByType INFLATE;SUBSTITUTE;DEFLATE text/html\nSubstitute s/foo/X/\n",
         requests=ALL + CODED),
    site("index", "DirectoryIndex a.html\n" + ON + "Substitute s/foo/X/\n", requests=["/", "/d/"]),
    site("error-document", "ErrorDocument 404 /a.html\nAddOutputFilterByType SUBSTITUTE text/html\nSubstitute s/foo/X/\n",
         requests=["/none", "/a.html"]),
    site("error-text", "ErrorDocument 404 \"foo is none\"\n" + ON + "Substitute s/foo/X/\n", requests=["/none"]),
    site("rewritten", ON + "Substitute s/foo/X/\nRewriteEngine on\nRewriteRule ^go$ d/b.html\n",
         {"d/.htaccess": "Substitute s/Old/New/\n"}, ["/go", "/d/b.html"]),
    site("rewritten-away", "RewriteEngine on\nRewriteRule ^go$ d/b.html\n", {"d/.htaccess": ON + "Substitute s/foo/X/\n"},
         ["/go", "/a.html", "/d/b.html", "/d/b.html"]),
    site("left-behind", "", {"d/.htaccess": ON + "Substitute s/foo/X/\nRewriteEngine on\nRewriteRule ^go$ /a.html\n"},
         ["/d/go", "/a.html", "/d/b.html"]),
    site("headers", ON + "Substitute s/foo/X/\nHeader set X-A b\nExpiresActive on\nExpiresDefault A0\n"),
    site("forced-type", "ForceType text/html\nAddOutputFilterByType SUBSTITUTE text/html\nSubstitute s/foo/X/\n"),
    site("charset", "AddDefaultCharset utf-8\nAddOutputFilterByType SUBSTITUTE text/html\nSubstitute s/foo/X/\n"),
    site("line-length", ON + "SubstituteMaxLineLength 1M\nSubstitute s/foo/X/\n"),
    site("many", ON + "".join(f"Substitute s/{a}/{b}/\n" for a, b in zip("abcdefghij", "bcdefghijk"))),
    site("conditional", ON + "Substitute s/foo/X/\n", requests=[("GET", "/a.html", {"If-None-Match": "*"}),
         ("GET", "/a.html", {"If-Modified-Since": "Sat, 28 Nov 2099 15:00:00 GMT"})]),
]
