//! CGI parameters: `fastcgi_param`, `uwsgi_param`, `scgi_param` and similar directives, and the
//! default parameters of PHP.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, byte, flag, list, value};
use crate::model::{Handler, OriginSettings, Param, Pass, PassTo, Protocol, UpstreamKind};
use crate::reader::{BlockScope, ConfReader, ReadFault, ReadResult, invalid_parameter, show};
use crate::regex::{LetterCase, Regex};
use crate::template::fixed;
use crate::vars::Template;

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    list("fastcgi_param", HSL, Args::between(2, 3), param)
        .doc(
            "A CGI parameter; with `if_not_empty`, only if its value is not empty.",
            "fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;",
        )
        .takes("NAME TEXT [if_not_empty]")
        .without("none; `php_pass` and `lsapi_pass` send the list of `conf/fastcgi.conf`"),
    list("uwsgi_param", HSL, Args::between(2, 3), param)
        .doc(
            "A variable of uwsgi requests; with `if_not_empty`, only if its value is not empty.",
            "uwsgi_param REQUEST_METHOD $request_method;",
        )
        .takes("NAME TEXT [if_not_empty]")
        .without("none; `conf/uwsgi_params` has the usual ones"),
    byte("uwsgi_modifier1", HSL, |r| &mut r.origin().uwsgi_modifiers[0])
        .doc("The first modifier of uwsgi requests: the kind of request.", "uwsgi_modifier1 5;"),
    byte("uwsgi_modifier2", HSL, |r| &mut r.origin().uwsgi_modifiers[1])
        .doc("The second modifier of uwsgi requests.", "uwsgi_modifier2 0;"),
    value("uwsgi_string", HSL, Args::ONE, |r, node| {
        r.origin().uwsgi_string = node.arg(0).into();
        Ok(())
    })
    .doc(
        "Bytes behind the variables of uwsgi requests, as they are, for a modifier that reads \
         such.",
        "uwsgi_string \"print('hello')\";",
    )
    .takes("TEXT")
    .without("none"),
    list("scgi_param", HSL, Args::between(2, 3), param)
        .doc(
            "A header of SCGI requests, behind `CONTENT_LENGTH`; with `if_not_empty`, only if its \
             value is not empty.",
            "scgi_param REQUEST_METHOD $request_method;",
        )
        .takes("NAME TEXT [if_not_empty]")
        .without("none; `conf/scgi_params` has the usual ones"),
    value("fastcgi_index", HSL, Args::ONE, index)
        .doc("The file name appended to a path that ends in `/`.", "fastcgi_index index.php;")
        .takes("FILE")
        .without("none"),
    list("fastcgi_split_path_info", HSL, Args::ONE, split_path_info)
        .doc(
            "An expression whose two groups split a path into script and path info.",
            "fastcgi_split_path_info ^(.+?\\.php)(/.*)$;",
        )
        .takes("REGEX")
        .without("none"),
    flag("fastcgi_keep_conn", HSL, |r| &mut r.origin().keep_conn)
        .doc("Whether connections are reused for several requests.", "fastcgi_keep_conn on;"),
    list("fastcgi_catch_stderr", HSL, Args::ONE, |r, node| {
        let again = r.again;
        let texts = &mut r.origin().catch_stderr;
        if !again {
            *texts = Arc::default();
        }
        Arc::make_mut(texts).push(node.arg(0).into());
        Ok(())
    })
    .doc(
        "A text in the error stream that makes a response invalid.",
        "fastcgi_catch_stderr \"PHP Fatal error\";",
    )
    .takes("TEXT")
    .without("none"),
];

fn index(r: &mut ConfReader, node: &Node) -> ReadResult {
    let name = node.arg(0);
    r.origin().index = (!name.is_empty()).then(|| Arc::from(name));
    Ok(())
}

fn split_path_info(r: &mut ConfReader, node: &Node) -> ReadResult {
    // Named groups define no variables here.
    let regex = Regex::new(node.arg(0), LetterCase::Sensitive).map_err(ReadFault::Text)?;
    if regex.groups() != 3 {
        let pattern = show(node.arg(0));
        return Err(ReadFault::Text(format!("pattern \"{pattern}\" must have 2 captures")));
    }
    r.origin().split_path_info = Some(regex);
    Ok(())
}

fn param(r: &mut ConfReader, node: &Node) -> ReadResult {
    // nginx reads values when the block ends, so an error in one is reported there.
    let value = match r.template(node.arg(1)) {
        Ok(value) => value,
        Err(ReadFault::Text(message)) => {
            r.http.param_faults.push(message);
            Template::default()
        }
        Err(fault) => return Err(fault),
    };
    let if_not_empty = match node.arg(2) {
        b"if_not_empty" => true,
        _ if node.args_count() == 2 => false,
        word => return Err(invalid_parameter(word)),
    };
    let again = r.again;
    let params = &mut r.origin().params;
    if !again {
        *params = Arc::default();
    }
    Arc::make_mut(params).push(Param { name: Arc::from(node.arg(0)), value, if_not_empty });
    Ok(())
}

/// The default parameters of PHP: name, value, whether an empty value is omitted.
/// `conf/fastcgi.conf` has the same, and a test compares the two.
const PHP: &[(&str, &str, bool)] = &[
    ("SCRIPT_FILENAME", "$document_root$fastcgi_script_name", false),
    ("PATH_INFO", "$fastcgi_path_info", false),
    ("QUERY_STRING", "$query_string", false),
    ("REQUEST_METHOD", "$request_method", false),
    ("CONTENT_TYPE", "$content_type", false),
    ("CONTENT_LENGTH", "$content_length", false),
    ("SCRIPT_NAME", "$fastcgi_script_name", false),
    ("REQUEST_URI", "$request_uri", false),
    ("DOCUMENT_URI", "$document_uri", false),
    ("DOCUMENT_ROOT", "$document_root", false),
    ("SERVER_PROTOCOL", "$server_protocol", false),
    ("REQUEST_SCHEME", "$scheme", false),
    ("HTTPS", "$https", true),
    ("SCRIPT_URI", "$scheme://$host$is_request_port$request_port$uri", false),
    ("SCRIPT_URL", "$uri", false),
    ("GATEWAY_INTERFACE", "CGI/1.1", false),
    // WordPress offers rewritten permalinks only to servers whose name it knows.
    ("SERVER_SOFTWARE", "bolide/$nginx_version (nginx compatible)", false),
    ("REMOTE_ADDR", "$remote_addr", false),
    ("REMOTE_PORT", "$remote_port", false),
    ("REMOTE_USER", "$remote_user", false),
    ("SERVER_ADDR", "$server_addr", false),
    ("SERVER_PORT", "$server_port", false),
    ("SERVER_NAME", "$server_name", false),
    ("REDIRECT_STATUS", "200", false),
    ("HTTP_HOST", "$host$is_request_port$request_port", false),
    // A client's `Proxy` field must never become the variable that programs read their proxy from.
    ("HTTP_PROXY", "", false),
];

/// The default settings of a PHP location.
struct Implied {
    params: Arc<Vec<Param>>,
    index: Arc<[u8]>,
    split_path_info: Regex,
}

impl Implied {
    fn new() -> Self {
        let params = PHP.iter().map(|(name, value, if_not_empty)| Param {
            name: name.as_bytes().into(),
            value: fixed(value),
            if_not_empty: *if_not_empty,
        });
        // A path may contain line feeds.
        let split = Regex::new(br"(?s)^(.+?\.php)(/.*)\z", LetterCase::Sensitive);
        Self {
            params: Arc::new(params.collect()),
            index: Arc::from(&b"index.php"[..]),
            split_path_info: split.expect("this expression is well formed"),
        }
    }
}

/// How many upstream settings are remembered, to be shared by locations with the same ones.
const ORIGINS_MAX: usize = 16;

impl ConfReader {
    /// Lets a complete block share its upstream settings with an earlier one that has the same, as
    /// thousands of servers that include the same parameters do.
    pub(crate) fn share_origin(&mut self, scope: &mut BlockScope) {
        let known = &mut self.http.origins;
        let own = &scope.settings.origin;
        let place = known.iter().position(|known| Arc::ptr_eq(known, own) || known == own);
        let Some(at) = place else {
            known.truncate(ORIGINS_MAX - 1);
            return known.insert(0, Arc::clone(own));
        };
        known[..=at].rotate_right(1);
        if !Arc::ptr_eq(&known[0], own) {
            let shared = Arc::clone(&known[0]);
            Arc::make_mut(&mut scope.settings).origin = shared;
        }
    }

    /// Gives PHP locations the parameters that they need and the configuration omits.
    pub(crate) fn imply_params(&mut self) {
        let php: Vec<usize> = (0..self.http.locations.len())
            .filter(|at| match &self.http.locations[*at].handler {
                Handler::Pass(pass) => self.is_php(pass),
                _ => false,
            })
            .collect();
        if php.is_empty() {
            return;
        }
        let implied = Implied::new();
        let mut known: HashMap<*const OriginSettings, Arc<OriginSettings>> = HashMap::new();
        for at in php {
            let settings = &mut self.http.locations[at].settings;
            let written = &settings.origin;
            let full = known.entry(Arc::as_ptr(written)).or_insert_with(|| {
                let mut origin = OriginSettings::clone(written);
                if origin.params.is_empty() {
                    origin.params = Arc::clone(&implied.params);
                }
                origin.index.get_or_insert_with(|| Arc::clone(&implied.index));
                origin.split_path_info.get_or_insert_with(|| implied.split_path_info.clone());
                Arc::new(origin)
            });
            let full = Arc::clone(full);
            Arc::make_mut(settings).origin = full;
        }
    }

    /// Whether the target is PHP: a pool, or a protocol that only PHP speaks.
    fn is_php(&self, pass: &Pass) -> bool {
        let group = match pass.to {
            PassTo::Group(id) => Some(&self.http.upstreams[id.index()]),
            PassTo::Text(_) => None,
        };
        pass.protocol == Protocol::Lsapi
            || group.is_some_and(|group| matches!(group.kind, UpstreamKind::Pool(_)))
    }
}
