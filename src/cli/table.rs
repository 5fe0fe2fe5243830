//! Every command and option with its words. The parser, the texts of `--help`, the man page and the
//! completions of shells are made from it.

/// How often an option may appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionTimes {
    Once,
    Many,
}

/// What the word after an option, or after a command, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandKind {
    /// There is none.
    None,
    File,
    Directory,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any other text.
    Text,
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionRow {
    /// As it is typed: `--json`, `-c`; two spellings are joined by a comma.
    pub(crate) flag: &'static str,
    /// The word for its value in texts; empty without one.
    pub(crate) value: &'static str,
    pub(crate) kind: OperandKind,
    pub(crate) times: OptionTimes,
    pub(crate) doc: &'static str,
}

/// A command; the empty name is the server itself.
#[derive(Debug)]
pub(crate) struct CommandRow {
    pub(crate) name: &'static str,
    /// What follows the name, as in a synopsis.
    pub(crate) usage: &'static str,
    pub(crate) operand: OperandKind,
    pub(crate) options: &'static [OptionRow],
    pub(crate) doc: &'static str,
}

impl OptionRow {
    /// Its name without dashes.
    pub(crate) fn name(&self) -> &'static str {
        self.flag.trim_start_matches('-')
    }
}

const fn flag(flag: &'static str, doc: &'static str) -> OptionRow {
    OptionRow { flag, value: "", kind: OperandKind::None, times: OptionTimes::Once, doc }
}

const fn one(flag: &'static str, value: &'static str, doc: &'static str) -> OptionRow {
    OptionRow { flag, value, kind: OperandKind::Text, times: OptionTimes::Once, doc }
}

const fn many(flag: &'static str, value: &'static str, doc: &'static str) -> OptionRow {
    OptionRow { times: OptionTimes::Many, ..one(flag, value, doc) }
}

const fn with(kind: OperandKind, row: OptionRow) -> OptionRow {
    OptionRow { kind, ..row }
}

/// nginx's options.
pub(crate) static OPTIONS: &[OptionRow] = &[
    flag("-?,-h", "this help"),
    flag("-v", "show version and exit"),
    flag("-V", "show version and configure options then exit"),
    flag("-t", "test configuration and exit"),
    flag("-T", "test configuration, dump it and exit"),
    flag("-q", "suppress non-error messages during configuration testing"),
    with(
        OperandKind::Choice(&["stop", "quit", "reopen", "reload"]),
        one("-s", "signal", "send signal to a master process: stop, quit, reopen, reload"),
    ),
    with(OperandKind::Directory, one("-p", "prefix", "set prefix path (default: /etc/bolide/)")),
    with(OperandKind::File, one("-e", "filename", "set error log file (default: logs/error.log)")),
    with(
        OperandKind::File,
        one(
            "-c",
            "filename",
            "set configuration file (default: the first of bolide.conf, nginx.conf and \
             conf/nginx.conf below the prefix)",
        ),
    ),
    one("-g", "directives", "set global directives out of configuration file"),
];

/// The options that any command may be followed by, besides its own.
pub(crate) static SHARED: &[OptionRow] = &[JSON, VHOST, ZONE, PID];

const JSON: OptionRow = flag("--json", "print JSON");
const VHOST: OptionRow =
    many("--vhost", "NAME", "only in the space of the server with this first name");
const ZONE: OptionRow = many("--zone", "NAME", "only in this zone of fastcgi_cache_path");
const PID: OptionRow =
    one("--pid", "PID", "the running server, instead of the one in the pid file");
const HEADER: OptionRow = many("--header", "NAME: VALUE", "a header of the request");
const LISTEN: OptionRow =
    one("--listen", "ADDRESS", "the listening address or port, instead of the URL's");
const ADDRESS: OptionRow =
    many("--listen", "ADDRESS", "listen on this address, * for all (default: the loopback)");
const HTTP: OptionRow = one("--http", "PORT", "the port of http (default: 8080 or above)");
const HTTPS: OptionRow = one("--https", "PORT", "the port of https (default: 8443 or above)");

/// The commands that need no running server, or say nothing but a state.
pub(crate) static COMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "serve",
        usage: "[--php] [--page-cache] [--listen ADDRESS]... [--http PORT] [--https PORT] [--print-config] \
                [DIRECTORY]",
        operand: OperandKind::Directory,
        options: &[
            flag("--php", "run the PHP of the directory, too"),
            flag("--page-cache", "run PHP, and keep what it says may be cached"),
            ADDRESS,
            HTTP,
            HTTPS,
            flag("--print-config", "print the configuration instead, as a start for your own"),
        ],
        doc: "serve a directory at once, over http and https",
    },
    CommandRow {
        name: "demo",
        usage: "[--listen ADDRESS]... [--http PORT] [--https PORT]",
        operand: OperandKind::None,
        options: &[ADDRESS, HTTP, HTTPS],
        doc: "serve the demonstration site",
    },
    CommandRow {
        name: "check",
        usage: "[--all] [FILE]",
        operand: OperandKind::File,
        options: &[flag("--all", "also those that work as in nginx")],
        doc: "report how this server treats each directive of a configuration",
    },
    CommandRow {
        name: "import apache",
        usage: "PATH",
        operand: OperandKind::File,
        options: &[],
        doc: "print the configuration of Apache (httpd.conf, apache2.conf, or its directory) in \
              nginx's language, with a comment for each line that has no counterpart. With -c \
              such a file is served by directly",
    },
    CommandRow {
        name: "adopt",
        usage: "[--dry-run] [--nginx-pid FILE] [--watch TIME]",
        operand: OperandKind::None,
        options: &[
            flag("--dry-run", "print what would be taken over, and change nothing"),
            with(
                OperandKind::File,
                one(
                    "--nginx-pid",
                    "FILE",
                    "the pid file of nginx (default: that of the configuration, or \
                     /run/nginx.pid)",
                ),
            ),
            one(
                "--watch",
                "TIME",
                "how long nginx is kept to go back to (default: 60s); 0 ends it at once",
            ),
        ],
        doc: "take over from an nginx that runs, by its configuration (-c; default: \
              /etc/nginx/nginx.conf), without losing a connection: print the differences, \
              serve at its sockets, let its workers finish, end it. If too much fails \
              meanwhile, nginx serves again and the command fails.",
    },
    CommandRow {
        name: "php status",
        usage: "",
        operand: OperandKind::None,
        options: &[],
        doc: "show the state of the php pools of the running server",
    },
    CommandRow {
        name: "php top",
        usage: "[--json]",
        operand: OperandKind::None,
        options: &[JSON],
        doc: "show what each php pool does and costs, over one second: processes, memory, CPU, \
              requests, its queue; the busiest first",
    },
    CommandRow {
        name: "php restart",
        usage: "[NAME]",
        operand: OperandKind::Text,
        options: &[],
        doc: "restart php pools, without losing a request",
    },
];

/// The commands for a running server.
pub(crate) static ADMIN_COMMANDS: &[CommandRow] = &[
    EXPLAIN,
    LIST,
    STATS,
    PURGE,
    BAN,
    BANS,
    WARM,
    RELOAD,
    DRAIN,
    STATUS,
    METRICS,
    ROLLOVER,
    CLUSTER_STATUS,
    CLUSTER_PEERS,
    CLUSTER_PURGES,
];

pub(super) const EXPLAIN: CommandRow = CommandRow {
    name: "explain",
    usage: "[--json] [--method NAME] [--cookie NAME=VALUE]... [--header 'NAME: VALUE']... \
            [--from ADDRESS] [--listen ADDRESS] URL | --request ID",
    operand: OperandKind::Text,
    options: &[
        JSON,
        one("--method", "NAME", "the method, instead of GET"),
        many("--cookie", "NAME=VALUE", "a cookie of the request"),
        HEADER,
        one("--from", "ADDRESS", "the client's address, instead of 127.0.0.1"),
        LISTEN,
        one(
            "--request",
            "ID",
            "show the decision about the request that logs show as $request_id; a prefix of it is \
             enough",
        ),
        PID,
    ],
    doc: "show how a request would be answered now, and why: server, location, rewriting, the \
          key, the stored objects, the decision, and what would have to change for a hit. Nothing \
          is sent and nothing changes. With -c and without a server, the configuration alone is \
          used.",
};
pub(super) const LIST: CommandRow = CommandRow {
    name: "cache list",
    usage: "[--json] [--vhost NAME]... [--zone NAME]... [--tag TAG] [--url PREFIX] [--limit N]",
    operand: OperandKind::None,
    options: &[
        JSON,
        VHOST,
        ZONE,
        one("--tag", "TAG", "with this tag; a final * matches any suffix"),
        one("--url", "PREFIX", "with this prefix of the URL, or of the path"),
        one("--limit", "N", "the most entries; default 100"),
        PID,
    ],
    doc: "show the cached objects",
};
pub(super) const STATS: CommandRow = CommandRow {
    name: "cache stats",
    usage: "[--json] [--vhost NAME]... [--zone NAME]...",
    operand: OperandKind::None,
    options: &[JSON, VHOST, ZONE, PID],
    doc: "show figures of the store and its spaces",
};
pub(super) const PURGE: CommandRow = CommandRow {
    name: "cache purge",
    usage: "[--json] [--stale] [--wait N] [--vhost NAME]... [--zone NAME]... [--listen ADDRESS] \
            (--url URL | --tag TAG | --prefix PREFIX)... | --all",
    operand: OperandKind::None,
    options: &[
        JSON,
        VHOST,
        ZONE,
        many("--url", "URL", "all copies of this page"),
        many("--tag", "TAG", "everything with this tag; a final * matches any suffix"),
        many("--prefix", "PREFIX", "everything with this prefix of the URL, or of the path"),
        flag("--all", "everything"),
        flag("--stale", "keep serving it stale while one request refreshes it"),
        one(
            "--wait",
            "N",
            "wait until N nodes of the cluster have carried it out, this one included",
        ),
        LISTEN,
        PID,
    ],
    doc: "drop objects, and print how many. In a cluster all nodes do; with --wait it fails if so \
          many have not within ten seconds, and prints which.",
};
pub(super) const BAN: CommandRow = CommandRow {
    name: "cache ban",
    usage: "[--json] [--stale] [--vhost NAME]... CONDITION",
    operand: OperandKind::Text,
    options: &[
        JSON,
        VHOST,
        flag("--stale", "keep serving it stale while one request refreshes it"),
        PID,
    ],
    doc: "drop each page that meets a condition of Varnish's, when it is next asked for: \
          req.url, req.http.host, obj.status or obj.http.NAME, one of ==, !=, ~ and !~, and a \
          value; && joins conditions",
};
pub(super) const BANS: CommandRow = CommandRow {
    name: "cache bans",
    usage: "[--json]",
    operand: OperandKind::None,
    options: &[JSON, PID],
    doc: "show the bans that not every object in memory has met yet",
};
pub(super) const WARM: CommandRow = CommandRow {
    name: "cache warm",
    usage: "[--json] [--concurrency N] [--rate N] [--header 'NAME: VALUE']... [--sitemap \
            FILE|URL]... [[--url] URL]...",
    operand: OperandKind::Text,
    options: &[
        JSON,
        one("--concurrency", "N", "concurrent requests; default 2"),
        one("--rate", "N", "the most requests per second"),
        HEADER,
        with(OperandKind::File, many("--sitemap", "FILE|URL", "the pages of a sitemap")),
        many("--url", "URL", "a page; the same as without the option"),
        PID,
    ],
    doc: "request pages from the running server, so that they are cached",
};
pub(super) const RELOAD: CommandRow = CommandRow {
    name: "reload",
    usage: "[--dry-run | --wait]",
    operand: OperandKind::None,
    options: &[
        flag("--dry-run", "print what would change, and change nothing"),
        flag("--wait", "wait until reload_watch has judged the new configuration"),
        PID,
    ],
    doc: "reload the configuration, and print warnings, or why it was refused: a refused one \
          changes nothing, and the command fails. With --dry-run: which blocks, listening \
          addresses, certificates and cache zones are new (+), gone (-) or different (~). \
          Addresses and log files are not tried. With --wait, where the configuration has \
          reload_watch: whether it stays in force; the command fails if it was taken back.",
};
pub(super) const DRAIN: CommandRow = CommandRow {
    name: "drain",
    usage: "[--after SECONDS]",
    operand: OperandKind::None,
    options: &[one("--after", "SECONDS", "how long new requests are taken yet; default 5"), PID],
    doc: "have locations with \"health ready\" answer 503, so that a balancer sends no more, quit \
          some seconds later as -s quit does, and wait until the last request is answered",
};
pub(super) const STATUS: CommandRow = CommandRow {
    name: "status",
    usage: "[--json]",
    operand: OperandKind::None,
    options: &[JSON, PID],
    doc: "show the resources of the server: connections, requests, deadlines and slots of each \
          worker, descriptors, memory, the cache, PHP",
};
pub(super) const ROLLOVER: CommandRow = CommandRow {
    name: "acme rollover",
    usage: "ISSUER",
    operand: OperandKind::Text,
    options: &[PID],
    doc: "give the account at an issuer (acme_issuer) another key; certificates stay as they are",
};
pub(super) const CLUSTER_STATUS: CommandRow = CommandRow {
    name: "cluster status",
    usage: "[--json]",
    operand: OperandKind::None,
    options: &[JSON, PID],
    doc: "show what this node shares with others: its connection to Valkey, where it stands in the \
          stream of purges, how many it has sent and received; and of secrets and limits",
};
pub(super) const CLUSTER_PEERS: CommandRow = CommandRow {
    name: "cluster peers",
    usage: "[--json]",
    operand: OperandKind::None,
    options: &[JSON, PID],
    doc: "show the nodes of the cluster, how far each has carried out purges, and when it was seen",
};
pub(super) const CLUSTER_PURGES: CommandRow = CommandRow {
    name: "cluster purges",
    usage: "[--json] [--limit N]",
    operand: OperandKind::None,
    options: &[JSON, one("--limit", "N", "the most entries; default 20"), PID],
    doc: "show the newest purges of the cluster, with the node that each came from",
};
pub(super) const METRICS: CommandRow = CommandRow {
    name: "metrics",
    usage: "[--openmetrics]",
    operand: OperandKind::None,
    options: &[flag("--openmetrics", "print OpenMetrics"), PID],
    doc: "print the figures of the server in the text format of Prometheus",
};
