//! A FastCGI application with responses that a test defines. It records the requests.
//!
//! It does not use the product's FastCGI code; the few records that it needs are here.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime};

use crate::site;

/// A request that the application received.
#[derive(Debug, Clone, Default)]
pub struct AppRequest {
    /// The parameters, `HTTP_*` among them.
    pub params: BTreeMap<String, String>,
    /// The request body.
    pub body: Vec<u8>,
}

impl AppRequest {
    /// Path and query.
    #[must_use]
    pub fn uri(&self) -> &str {
        self.param("REQUEST_URI").unwrap_or_default()
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.param("REQUEST_METHOD").unwrap_or_default()
    }

    /// The value of a parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.get(name).map(String::as_str)
    }

    /// The value of a request field, by its own name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.param(&format!("HTTP_{}", name.to_ascii_uppercase().replace('-', "_")))
    }
}

/// How a response ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AppEnd {
    /// Complete.
    #[default]
    Whole,
    /// The connection closes within a record.
    Cut,
}

/// A response of the application.
#[derive(Debug, Clone, Default)]
pub struct AppSaid {
    /// The fields, one per line.
    pub head: String,
    /// The body; by default `run N` for the N-th request with this URI.
    pub body: Option<Vec<u8>>,
    /// How it ends.
    pub end: AppEnd,
}

impl AppSaid {
    /// A response with these fields (one per line) and `run N`.
    #[must_use]
    pub fn head(head: &str) -> Self {
        Self { head: head.to_owned(), ..Self::default() }
    }

    /// The same with this body.
    #[must_use]
    pub fn body(self, body: &[u8]) -> Self {
        Self { body: Some(body.to_vec()), ..self }
    }

    /// The same, truncated.
    #[must_use]
    pub fn cut(self) -> Self {
        Self { end: AppEnd::Cut, ..self }
    }
}

#[derive(Default)]
struct State {
    /// By path and query: the first response, the second, and the last for all others.
    plans: BTreeMap<String, Vec<AppSaid>>,
    asked: Vec<AppRequest>,
    /// Requests for this URI wait.
    held: Option<String>,
}

/// A running application. It ends with the test process.
pub struct TestApp {
    path: PathBuf,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Default for TestApp {
    fn default() -> Self {
        Self::start()
    }
}

impl TestApp {
    /// Starts an application on a unix socket. It responds with `run N` to everything.
    ///
    /// # Panics The socket cannot be created.
    #[must_use]
    pub fn start() -> Self {
        let path = site::temp_dir().join("app.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let state = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for peer in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    let _peer_left = answer(peer, &shared);
                });
            }
        });
        Self { path, state }
    }

    /// The address for `fastcgi_pass`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("unix:{}", self.path.display())
    }

    /// Sets the response to all requests for `uri`.
    pub fn say(&self, uri: &str, head: &str) {
        self.plan(uri, vec![AppSaid::head(head)]);
    }

    /// Sets the responses to requests for `uri` in order; the last one repeats.
    pub fn plan(&self, uri: &str, answers: Vec<AppSaid>) {
        let mut state = self.state.0.lock().unwrap();
        state.asked.retain(|asked| asked.uri() != uri);
        state.plans.insert(uri.to_owned(), answers);
    }

    /// The requests for `uri`, in order, since its responses were set.
    #[must_use]
    pub fn asked(&self, uri: &str) -> Vec<AppRequest> {
        let state = self.state.0.lock().unwrap();
        state.asked.iter().filter(|asked| asked.uri() == uri).cloned().collect()
    }

    /// The number of requests for `uri`.
    #[must_use]
    pub fn count(&self, uri: &str) -> usize {
        self.asked(uri).len()
    }

    /// Makes requests for `uri` wait until [`Self::release`].
    pub fn hold(&self, uri: &str) {
        self.state.0.lock().unwrap().held = Some(uri.to_owned());
    }

    /// Releases the waiting requests.
    pub fn release(&self) {
        self.state.0.lock().unwrap().held = None;
        self.state.1.notify_all();
    }

    /// Stops listening.
    pub fn vanish(&self) {
        let _gone = std::fs::remove_file(&self.path);
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.release();
        if let Some(dir) = self.path.parent() {
            let _gone = std::fs::remove_dir_all(dir);
        }
    }
}

/// The HTTP date `offset` seconds from now.
#[must_use]
pub fn http_date(offset: i64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
    let moment = now + offset;
    let (days, second) = (moment.div_euclid(86_400), moment.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let names = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        names[days.rem_euclid(7) as usize],
        months[month],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Year, month from 0, and day from the number of days since 1970.
fn civil(mut days: i64) -> (i64, usize, i64) {
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    loop {
        let len = 365 + i64::from(is_leap(year));
        if days < len {
            break;
        }
        days -= len;
        year += 1;
    }
    let february = 28 + i64::from(is_leap(year));
    for (month, len) in
        [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter().enumerate()
    {
        if days < len {
            return (year, month, days + 1);
        }
        days -= len;
    }
    (year, 11, 31)
}

const BEGIN: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;

fn answer(mut peer: UnixStream, shared: &(Mutex<State>, Condvar)) -> std::io::Result<()> {
    peer.set_read_timeout(Some(Duration::from_secs(30)))?;
    peer.set_write_timeout(Some(Duration::from_secs(30)))?;
    let (mut params, mut body) = (Vec::new(), Vec::new());
    let id = loop {
        let mut head = [0; 8];
        peer.read_exact(&mut head)?;
        let len = usize::from(u16::from_be_bytes([head[4], head[5]]));
        let mut content = vec![0; len + usize::from(head[6])];
        peer.read_exact(&mut content)?;
        content.truncate(len);
        match head[1] {
            PARAMS => params.extend(content),
            STDIN if len == 0 => break [head[2], head[3]],
            STDIN => body.extend(content),
            BEGIN => {}
            _ => return Ok(()),
        }
    };
    let asked = AppRequest { params: pairs(&params), body };
    let uri = asked.uri().to_owned();
    let (said, number) = {
        let mut state = shared.0.lock().unwrap();
        state.asked.push(asked);
        let number = state.asked.iter().filter(|asked| asked.uri() == uri).count();
        while state.held.as_deref() == Some(&uri) {
            state = shared.1.wait(state).unwrap();
        }
        let plan = state.plans.get(&uri).filter(|plan| !plan.is_empty());
        let said = plan.map(|plan| plan[(number - 1).min(plan.len() - 1)].clone());
        (said.unwrap_or_default(), number)
    };
    let mut text = Vec::new();
    for line in said.head.lines().map(str::trim).filter(|line| !line.is_empty()) {
        text.extend_from_slice(line.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    if !said.head.to_ascii_lowercase().contains("content-type:") {
        text.extend_from_slice(b"Content-Type: text/plain\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text.extend(said.body.unwrap_or_else(|| format!("run {number}").into_bytes()));
    let mut out = Vec::new();
    for piece in text.chunks(32_000) {
        push_record(&mut out, STDOUT, id, piece);
    }
    if said.end == AppEnd::Cut {
        // A record with less content than its header announces.
        out.extend([1, STDOUT, id[0], id[1], 4, 0, 0, 0, b'.']);
        return peer.write_all(&out);
    }
    push_record(&mut out, STDOUT, id, b"");
    push_record(&mut out, END_REQUEST, id, &[0; 8]);
    peer.write_all(&out)
}

fn push_record(out: &mut Vec<u8>, kind: u8, id: [u8; 2], content: &[u8]) {
    let len = u16::try_from(content.len()).unwrap().to_be_bytes();
    out.extend([1, kind, id[0], id[1], len[0], len[1], 0, 0]);
    out.extend_from_slice(content);
}

/// The names and values of PARAMS records, up to the first invalid one.
pub(crate) fn pairs(mut rest: &[u8]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    while !rest.is_empty() {
        let (name, value) = (take_len(&mut rest), take_len(&mut rest));
        let (Some(name), Some(value)) = (name, value) else { break };
        let Some((first, after)) = rest.split_at_checked(name) else { break };
        let Some((second, after)) = after.split_at_checked(value) else { break };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        found.insert(text(first), text(second));
        rest = after;
    }
    found
}

fn take_len(rest: &mut &[u8]) -> Option<usize> {
    let (&first, after) = rest.split_first()?;
    if first < 128 {
        *rest = after;
        return Some(first.into());
    }
    let (long, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some((u32::from_be_bytes(*long) & 0x7fff_ffff) as usize)
}

#[cfg(test)]
mod tests {
    use super::{civil, pairs};

    #[test]
    fn days_have_dates_and_parameters_have_lengths() {
        assert_eq!(civil(0), (1970, 0, 1));
        assert_eq!(civil(18_518), (2020, 8, 13));
        assert_eq!(civil(19_782), (2024, 1, 29));
        let long = "v".repeat(200);
        let mut text = vec![1, 1, b'a', b'b', 1, 128, 0, 0, 200, b'c'];
        text.extend(long.bytes());
        let found = pairs(&text);
        assert_eq!((&*found["a"], &*found["c"]), ("b", &*long));
    }
}
