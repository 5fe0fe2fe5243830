//! Names of Apache's modules and directives: which modules are always there, which directives
//! change nothing that a client could see, and which restrict.

/// Modules that are there without `LoadModule`.
pub(crate) const STATIC_MODULES: [&str; 8] =
    ["core", "so", "watchdog", "http", "log_config", "logio", "version", "unixd"];

/// A module by one name: `mod_x.c`, `x_module` and `path/mod_x.so` are `x`.
pub(crate) fn module(word: &str) -> String {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.trim_end_matches(".so").trim_end_matches(".c").trim_end_matches(".cpp");
    let name = name.strip_prefix("mod_").unwrap_or(name);
    let name = name.strip_suffix("_module").unwrap_or(name);
    match name {
        "http_core" => "http",
        name if name.starts_with("libphp") || name.starts_with("php") => "php",
        name => name,
    }
    .to_ascii_lowercase()
}

/// Directives that change nothing here, and why.
const IDLE: &[(&str, &[&str])] = &[
    (
        "processes and memory are arranged otherwise (worker_processes, worker_connections)",
        &[
            "startservers",
            "minspareservers",
            "maxspareservers",
            "minsparethreads",
            "maxsparethreads",
            "threadsperchild",
            "threadlimit",
            "serverlimit",
            "maxclients",
            "maxrequestworkers",
            "maxconnectionsperchild",
            "maxrequestsperchild",
            "threadstacksize",
            "asyncrequestworkerfactor",
            "listenbacklog",
            "listencoresbucketsratio",
            "mutex",
            "lockfile",
            "acceptmutex",
            "scoreboardfile",
            "coredumpdirectory",
            "acceptfilter",
            "gracefulshutdowntimeout",
            "enablemmap",
            "enablesendfile",
            "enableexceptionhook",
            "sendbuffersize",
            "receivebuffersize",
            "maxmemfree",
            "defaultruntimedir",
        ],
    ),
    (
        "names and words of the server itself",
        &[
            "serveradmin",
            "serversignature",
            "usecanonicalphysicalport",
            "hostnamelookups",
            "identitycheck",
            "serverroot",
            "accessfilename",
            "extendedstatus",
            "contentdigest",
            "magicmimefile",
            "mimemagicfile",
        ],
    ),
    (
        "listings look as autoindex has them",
        &[
            "indexoptions",
            "addicon",
            "addiconbytype",
            "addiconbyencoding",
            "defaulticon",
            "addalt",
            "addaltbytype",
            "addaltbyencoding",
            "adddescription",
            "readmename",
            "headername",
            "indexstylesheet",
            "indexheadinsert",
            "indexorderdefault",
        ],
    ),
    (
        "no language is negotiated",
        &["languagepriority", "forcelanguagepriority", "cachenegotiateddocs", "multiviewsmatch"],
    ),
    (
        "compression and filters are configured in nginx's words (gzip, brotli, sub_filter)",
        &[
            "addoutputfilterbytype",
            "addoutputfilter",
            "setoutputfilter",
            "removeoutputfilter",
            "filterdeclare",
            "filterprovider",
            "filterchain",
            "filterprotocol",
            "deflatebuffersize",
            "deflatecompressionlevel",
            "deflatememlevel",
            "deflatewindowsize",
            "deflatefilternote",
            "brotlicompressionquality",
            "brotlicompressionwindow",
            "brotlicompressionmaxinputblock",
            "deflateinflatelimitrequestbody",
            "substitute",
            "ssilegacyexprparser",
            "ssierrormsg",
            "ssitimeformat",
            "xbithack",
            "brotlifilternote",
        ],
    ),
    (
        "TLS sessions and stapling have nginx's settings (ssl_session_cache, ssl_stapling)",
        &[
            "sslsessioncache",
            "sslsessioncachetimeout",
            "sslrandomseed",
            "sslpassphrasedialog",
            "sslcryptodevice",
            "sslusestapling",
            "sslstaplingcache",
            "sslstaplingrespondertimeout",
            "sslstaplingreturnrespondererrors",
            "sslsessiontickets",
            "sslhonorcipherorder",
            "sslcompression",
            "ssloptions",
            "sslstrictsnivhostcheck",
            "sslinsecurerenegotiation",
            "sslcachecertificatefile",
        ],
    ),
    (
        "HTTP/2 and HTTP/3 have nginx's settings",
        &[
            "h2direct",
            "h2push",
            "h2pushresource",
            "h2maxsessionstreams",
            "h2windowsize",
            "h2minworkers",
            "h2maxworkers",
            "h2earlyhints",
            "h2moderntlsonly",
            "h2upgrade",
            "protocolshonororder",
        ],
    ),
    (
        "the proxy manages its connections itself",
        &[
            "proxyreceivebuffersize",
            "proxyiobuffersize",
            "proxyvia",
            "proxybadheader",
            "proxystatus",
            "proxyfcgibackendtype",
            "proxyfcgisetenvif",
            "proxymaxforwards",
            "proxypassinherit",
        ],
    ),
    ("PHP is set up in its pool (ini of php_pool, or php-fpm's own files)", &["phpinidir"]),
    (
        "no part of this server",
        &[
            "action",
            "script",
            "scriptlog",
            "scriptsock",
            "cgidscripttimeout",
            "rewritelog",
            "rewriteloglevel",
            "suexec",
            "modpagespeed",
            "passengerroot",
            "passengerruby",
            "passengerdefaultruby",
            "wsgisocketprefix",
            "wsgirestrictembedded",
        ],
    ),
];

/// Beginnings of directives that let clients in or keep them out.
const GUARDS: [&str; 22] = [
    "auth",
    "require",
    "<require",
    "allow",
    "deny",
    "order",
    "satisfy",
    "sslrequire",
    "sslverify",
    "sec",
    "<limit",
    "limit",
    "dos",
    "ratelimit",
    "session",
    "qs_",
    "geoip",
    "maxmind",
    "modsecurity",
    "oidc",
    "mellon",
    "<proxy",
];

/// Why a directive changes nothing; none where it may.
pub(crate) fn idle(lower: &str) -> Option<&'static str> {
    IDLE.iter().find(|(_, all)| all.contains(&lower)).map(|(why, _)| *why)
}

/// Whether a directive that is not understood may keep clients out.
pub(crate) fn guards(lower: &str) -> bool {
    GUARDS.iter().any(|start| lower.starts_with(start))
        && !matches!(
            lower,
            "limitrequestfields"
                | "limitrequestfieldsize"
                | "limitrequestline"
                | "limitrequestbody"
                | "limitxmlrequestbody"
                | "limitinternalrecursion"
        )
}

/// Names by which a file is known to be Apache's, in lower case.
pub(crate) fn is_of_apache(lower: &str) -> bool {
    const OTHERS: [&str; 14] = [
        "listen",
        "loadmodule",
        "include",
        "includeoptional",
        "define",
        "documentroot",
        "servername",
        "serveradmin",
        "customlog",
        "errorlog",
        "timeout",
        "keepalive",
        "serverroot",
        "pidfile",
    ];
    OTHERS.contains(&lower) || idle(lower).is_some()
}
