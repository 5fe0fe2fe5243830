//! `.htaccess` files of arbitrary bytes applied to a request, and their invariants.
//!
//! A fuzz target and a replay test call this; it panics if an invariant is violated.

use std::net::IpAddr;
use std::rc::Rc;

use bolide_htaccess::{
    Admission, Ahead, AheadKind, Applied, Effort, EnvTable, Evaluation, HeaderTimes, MapFunction,
    PathTest, RequestVariable, RewritePlace, Rewritten, Stop, Surroundings, parse,
};

/// A request with fixed properties.
#[derive(Clone, Debug, Default)]
pub struct PlainWorld {
    /// The decoded path.
    pub path: Vec<u8>,
    /// The path on disk.
    pub file: Vec<u8>,
    /// The query.
    pub args: Vec<u8>,
    /// Headers, names in lower case.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// Paths of files; those with a slash at their end are directories.
    pub files: Vec<Vec<u8>>,
    /// The user.
    pub user: Option<Vec<u8>>,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// `on` or not.
    pub https: bool,
}

impl Surroundings for PlainWorld {
    fn variable(&self, which: RequestVariable, out: &mut Vec<u8>) {
        let text: &[u8] = match which {
            RequestVariable::RequestUri => &self.path,
            RequestVariable::RequestFilename => &self.file,
            RequestVariable::QueryString => &self.args,
            RequestVariable::RequestMethod => b"GET",
            RequestVariable::RequestScheme => b"http",
            RequestVariable::ServerName => b"site.test",
            RequestVariable::ServerPort => b"80",
            RequestVariable::DocumentRoot => b"/srv/www",
            RequestVariable::TheRequest => b"GET / HTTP/1.1",
            RequestVariable::Https => {
                if self.https {
                    b"on"
                } else {
                    b"off"
                }
            }
            RequestVariable::RemoteAddr => {
                let text = self.client.map(|client| client.to_string()).unwrap_or_default();
                return out.extend_from_slice(text.as_bytes());
            }
            _ => b"",
        };
        out.extend_from_slice(text);
    }

    fn header(&self, name: &[u8], out: &mut Vec<u8>) -> bool {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        if let Some((_, value)) = found {
            out.extend_from_slice(value);
        }
        found.is_some()
    }

    fn each_header(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        self.headers.iter().for_each(|(name, value)| visit(name, value));
    }

    fn test(&mut self, test: PathTest, path: &[u8]) -> Result<bool, Stop> {
        let is_file = self.files.iter().any(|file| file == path);
        let is_directory = self.files.iter().any(|file| file.strip_suffix(b"/") == Some(path));
        Ok(match test {
            PathTest::Directory => is_directory,
            PathTest::File | PathTest::FileWithContent => is_file,
            PathTest::Anything => is_file || is_directory,
            PathTest::Link | PathTest::Executable => false,
        })
    }

    fn look_ahead(&mut self, kind: AheadKind, target: &[u8]) -> Result<Option<Rc<Ahead>>, Stop> {
        let is_there = self.files.iter().any(|file| file == target);
        let status = match kind {
            AheadKind::File if !is_there => 404,
            _ => 200,
        };
        let (uri, file) = (target.to_vec(), [b"/srv/www", target].concat());
        Ok(Some(Rc::new(Ahead { status, uri, file, is_there, ..Ahead::default() })))
    }

    fn map(&mut self, name: &[u8], key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop> {
        match name {
            b"lower" => MapFunction::Lower.push(key, out),
            b"empty" => return Ok(false),
            _ => return Err(Stop::Refused(500, "there is no such RewriteMap")),
        }
        Ok(true)
    }

    fn client(&self) -> Option<IpAddr> {
        self.client
    }

    fn user(&self) -> Option<&[u8]> {
        self.user.as_deref()
    }

    fn is_in_group(&self, group: &[u8]) -> bool {
        group == b"staff"
    }
}

/// Parses `data` as a file of `/srv/www/` and applies it to a request.
pub fn file(data: &[u8]) {
    let Ok(file) = parse(data) else { return };
    assert!(parse(data).is_ok(), "reading does not depend on what was read before");
    let mut world = PlainWorld {
        path: b"/dir/page.php".to_vec(),
        file: b"/srv/www/dir".to_vec(),
        args: b"a=1".to_vec(),
        headers: vec![(b"user-agent".to_vec(), b"Mozilla".to_vec())],
        ..PlainWorld::default()
    };
    let (mut env, mut varies) = (EnvTable::default(), Vec::new());
    let effort = Effort::default();
    let mut by = Evaluation::new(&mut world, &mut env, &mut varies, &effort);
    let levels = [(&b"/srv/www/"[..], &file)];
    let Ok(applied) = Applied::new(levels.into_iter(), b"page.php", &mut by) else { return };
    let first = applied.admission(b"GET", &mut by);
    assert_eq!(first, applied.admission(b"GET", &mut by), "a question changes nothing");
    if let Ok(admission) = first {
        assert!(
            admission != Admission::AsksWho || applied.may_ask_for_user(),
            "only rules about users ask for one"
        );
    }
    // The caller responds if the evaluation of an expression exceeds its limit.
    let _ = applied.set_conditional_env(&mut by);
    applied.set_env(&mut by);
    rewrite(&applied, &mut by);
    let mut fields = bolide_http::FieldMap::default();
    fields.push_text(b"content-type", b"text/html");
    let mut always = bolide_http::FieldMap::default();
    let times = HeaderTimes::default();
    if applied.edit_response(&mut fields, &mut always, (200, false), times, &mut by).is_ok() {
        for field in fields.iter().chain(always.iter()) {
            assert!(
                !field.value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)),
                "no field ends early"
            );
        }
    }
    let nature = applied.nature(b"page.php.txt");
    assert!(nature.charset.is_none_or(|charset| !charset.contains(&b' ')), "a charset is a token");
}

fn rewrite(applied: &Applied<'_>, by: &mut Evaluation<'_>) {
    let place = RewritePlace {
        file: b"/srv/www/dir",
        path_info: b"/page.php",
        args: Some(b"a=1"),
        target: b"/dir/page.php?a=1",
        root: b"/srv/www",
        prefix: b"",
        origin: b"http://site.test",
        is_inside: false,
        now: 1_700_000_000,
    };
    let Ok(outcome) = applied.rewrite(&place, by) else { return };
    match &outcome.result {
        Rewritten::Inside { path, args } => {
            assert_eq!(path.first(), Some(&b'/'), "a request goes to a path");
            let is_bad = |byte: &u8| byte.is_ascii_control();
            assert!(!args.iter().flatten().any(is_bad), "a query has no control characters");
        }
        Rewritten::Redirect(status, address) => {
            assert!((300..400).contains(status), "a redirect has the status of one");
            assert!(!address.iter().any(u8::is_ascii_control), "no field ends early");
        }
        Rewritten::Proxied { path, .. } => {
            assert_eq!(path.first(), Some(&b'/'), "another server is asked for a path");
        }
        Rewritten::Nothing | Rewritten::Query(_) | Rewritten::Status(_) => {}
    }
}
