//! `bolide cache warm`: requests pages from the running server, so that they are cached.
//!
//! Owns the requests; the server decides whether to store a page. It is polite: few requests at
//! once, and slower when the server says so. It behaves like crawlers of LSCache.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bolide_conf::model::{Config, ListenAddress, ListenTransport};
use bolide_engine::explain::{Json, Url};
use bolide_http::Scheme;

use super::format::show;
use super::line_protocol::Words;
use crate::invocation::Invocation;
use crate::messages::{err, out};
use crate::reading;

/// The default number of concurrent requests.
const CONCURRENCY: usize = 2;
/// LIMIT: pages asked for at once.
const CONCURRENCY_MAX: usize = 64;
/// LIMIT: pages in one go.
const URLS_MAX: usize = 1_000_000;
/// LIMIT: bytes of a sitemap.
const SITEMAP_MAX: u64 = 64 << 20;
/// LIMIT: bytes of the head of an answer.
const HEAD_MAX: u64 = 256 * 1024;
/// How long a page may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The pages to request.
#[derive(Clone, Debug)]
pub(crate) struct Warm {
    urls: Vec<Vec<u8>>,
    sitemaps: Vec<String>,
    headers: Vec<Vec<u8>>,
    concurrency: usize,
    /// Per second; `None` means no limit.
    rate: Option<u32>,
    json: bool,
}

impl Warm {
    /// From the words of the command line. The serving process does not matter: its addresses do.
    ///
    /// # Errors
    ///
    /// An invalid number, or nothing to request.
    pub(crate) fn new(words: &Words, _pid: Option<u32>) -> Result<Self, String> {
        let number = |name: &str, max: usize| match words.text(name) {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(number) if (1..=max).contains(&number) => Ok(Some(number)),
                _ => Err(format!("invalid number \"{text}\" in \"--{name}\"; at most {max}")),
            },
        };
        let all = |name: &str| words.all(name).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let warm = Self {
            urls: all("url"),
            sitemaps: words
                .all("sitemap")
                .map(|text| String::from_utf8_lossy(text).into_owned())
                .collect(),
            headers: all("header"),
            concurrency: number("concurrency", CONCURRENCY_MAX)?.unwrap_or(CONCURRENCY),
            rate: number("rate", 1_000_000)?.map(|rate| rate as u32),
            json: words.has("json"),
        };
        if warm.urls.is_empty() && warm.sitemaps.is_empty() {
            return Err("\"cache warm\" requires a URL or --sitemap".to_owned());
        }
        Ok(warm)
    }
}

/// The result of one page.
#[derive(Clone, Debug)]
struct Page {
    status: u16,
    /// The server's cache status: `miss`, `hit`, `HIT`; empty if absent.
    cache: String,
    is_chunked: bool,
}

#[derive(Debug, Default)]
struct Sums {
    asked: u64,
    failed: u64,
    stored: u64,
    hits: u64,
    others: u64,
}

pub(super) fn run(invocation: &Invocation, warm: &Warm) -> Result<ExitCode, String> {
    let reading = reading::of_file(invocation).map_err(|mistakes| mistakes.errors.join("\n"))?;
    let caller = Caller { config: &reading.config, headers: &warm.headers };
    let mut named = NamedPages::default();
    for url in &warm.urls {
        named.urls.push(Url::parse(url)?);
    }
    for sitemap in &warm.sitemaps {
        caller.collect(sitemap, 0, &mut named)?;
    }
    let NamedPages { mut urls, invalid } = named;
    urls.truncate(URLS_MAX);
    let next = AtomicUsize::new(0);
    let sums = Mutex::new(Sums { asked: invalid, failed: invalid, ..Sums::default() });
    let pause = warm.rate.map(|rate| Duration::from_secs(1) / rate);
    let start = bolide_io::process::now().mono;
    std::thread::scope(|scope| {
        for _ in 0..warm.concurrency.min(urls.len()) {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && let Some(url) = urls.get(at)
                {
                    if let Some(pause) = pause {
                        wait_until(start.after(pause.saturating_mul(at as u32)));
                    }
                    let page = caller.ask(url);
                    let mut sums = sums.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    sums.count(url, &page, warm.json);
                }
            });
        }
    });
    let sums = sums.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    out(&if warm.json { sums.json().line() } else { sums.text().into_bytes() });
    Ok(if sums.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn wait_until(moment: bolide_base::Instant) {
    loop {
        let now = bolide_io::process::now().mono;
        if now >= moment {
            return;
        }
        std::thread::park_timeout(moment.since(now));
    }
}

impl Sums {
    fn count(&mut self, url: &Url, page: &Result<Page, String>, json: bool) {
        self.asked += 1;
        let url = show(url.text().as_bytes());
        match page {
            Err(why) => {
                self.failed += 1;
                err(&format!("bolide: {url}: {why}"));
            }
            Ok(page) => {
                let word = page.cache.to_ascii_lowercase();
                match word.split(',').next().unwrap_or_default().trim() {
                    "miss" => self.stored += 1,
                    "hit" => self.hits += 1,
                    _ => self.others += 1,
                }
                if page.status >= 500 {
                    self.failed += 1;
                    err(&format!("bolide: {url}: {}", page.status));
                } else if !json {
                    let cache = if page.cache.is_empty() { "-" } else { &page.cache };
                    out(format!("{} {cache} {url}\n", page.status).as_bytes());
                }
            }
        }
    }

    fn text(&self) -> String {
        let Self { asked, failed, stored, hits, others } = self;
        format!(
            "requested {asked}: {stored} stored, {hits} already cached, {others} not stored, \
             {failed} failed\n"
        )
    }

    fn json(&self) -> Json {
        Json::Object(vec![
            ("asked", Json::number(self.asked)),
            ("kept_now", Json::number(self.stored)),
            ("kept_before", Json::number(self.hits)),
            ("not_kept", Json::number(self.others)),
            ("failed", Json::number(self.failed)),
        ])
    }
}

/// What the command line and sitemaps name.
#[derive(Debug, Default)]
struct NamedPages {
    urls: Vec<Url>,
    /// The number of addresses in sitemaps that are no URLs of a page; each was reported.
    invalid: u64,
}

/// Sends requests to the server of this configuration.
struct Caller<'a> {
    config: &'a Config,
    headers: &'a [Vec<u8>],
}

impl Caller<'_> {
    /// The address for requests for a URL: this server, whatever the name resolves to.
    /// With a header of the PROXY protocol if the listener expects one.
    fn address(&self, url: &Url) -> Result<(SocketAddr, &'static [u8]), String> {
        let listens = self.config.http.as_ref().map_or(&[][..], |http| &http.listens);
        let fits = |listen: &&bolide_conf::model::Listen| {
            listen.transport == ListenTransport::Tcp
                && listen.tls == (url.scheme == Scheme::Https)
                && listen.address.port() == url.port
        };
        let listen = listens.iter().filter(fits).min_by_key(|listen| listen.proxy_protocol);
        match listen.map(|listen| (&listen.address, listen.proxy_protocol)) {
            Some((ListenAddress::Inet(addr), is_relayed)) => {
                let mut addr = *addr;
                match addr {
                    SocketAddr::V4(_) if addr.ip().is_unspecified() => {
                        addr.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
                    }
                    SocketAddr::V6(_) if addr.ip().is_unspecified() => {
                        addr.set_ip(std::net::Ipv6Addr::LOCALHOST.into());
                    }
                    _ => {}
                }
                Ok((addr, if is_relayed { b"PROXY UNKNOWN\r\n" } else { b"" }))
            }
            _ => Err(format!("this server does not listen on port {}", url.port)),
        }
    }

    fn connect(&self, url: &Url) -> Result<TcpStream, String> {
        let (address, preface) = self.address(url)?;
        let mut socket = TcpStream::connect_timeout(&address, TIMEOUT)
            .map_err(|error| format!("connect() to {address} failed ({error})"))?;
        let limits = socket
            .set_read_timeout(Some(TIMEOUT))
            .and_then(|()| socket.set_write_timeout(Some(TIMEOUT)))
            .and_then(|()| socket.write_all(preface));
        limits.map_err(|error| error.to_string())?;
        Ok(socket)
    }

    fn ask(&self, url: &Url) -> Result<Page, String> {
        self.exchange(url, b"Accept-Encoding: gzip\r\n", &mut std::io::sink())
    }

    /// Sends a request with these additional fields and reads the whole response, writing its body
    /// to `body` as it arrives.
    fn exchange(&self, url: &Url, more: &[u8], body: &mut impl Write) -> Result<Page, String> {
        let socket = self.connect(url)?;
        match url.scheme {
            Scheme::Http => self.talk(url, more, socket, body),
            Scheme::Https => {
                let name = String::from_utf8_lossy(&url.host);
                let session = bolide_tls::TlsClient::new(&name, socket);
                self.talk(url, more, session.map_err(|error| error.to_string())?, body)
            }
        }
    }

    fn talk<S: Read + Write>(
        &self,
        url: &Url,
        more: &[u8],
        mut stream: S,
        body: &mut impl Write,
    ) -> Result<Page, String> {
        let failed = |error: std::io::Error| error.to_string();
        let mut request = Vec::new();
        request.extend_from_slice(b"GET ");
        request.extend_from_slice(&url.target);
        request.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        request.extend_from_slice(&url.authority);
        request.extend_from_slice(b"\r\nUser-Agent: lscache_runner bolide\r\nAccept: */*\r\n");
        request.extend_from_slice(more);
        for line in self.headers {
            request.extend_from_slice(line);
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"Connection: close\r\n\r\n");
        stream.write_all(&request).map_err(failed)?;
        stream.flush().map_err(failed)?;
        let mut reader = BufReader::new(stream);
        let page = read_head(&mut reader)?;
        // A peer that closes without `close_notify` has still sent the whole response.
        let _ = std::io::copy(&mut reader, body);
        Ok(page)
    }

    /// Adds the pages of a sitemap, and those of the sitemaps that it names.
    fn collect(&self, sitemap: &str, depth: u8, named: &mut NamedPages) -> Result<(), String> {
        let mut text = Vec::new();
        match Url::parse(sitemap.as_bytes()) {
            Ok(url) => {
                let page = self.exchange(&url, b"", &mut text)?;
                if page.status != 200 {
                    return Err(format!("{sitemap}: {}", page.status));
                }
                if page.is_chunked {
                    text = unchunked(&text).ok_or(format!("{sitemap} came broken"))?;
                }
            }
            Err(_) => {
                let len = std::fs::metadata(sitemap).map_err(|e| format!("{sitemap}: {e}"))?.len();
                if len > SITEMAP_MAX {
                    return Err(format!("{sitemap} is too large"));
                }
                text = std::fs::read(sitemap).map_err(|error| format!("{sitemap}: {error}"))?;
            }
        }
        let is_index = text.windows(13).any(|part| part == b"<sitemapindex");
        let found = locations(&text);
        if found.is_empty() {
            return Err(format!("{sitemap} names no page"));
        }
        for one in found {
            if is_index && depth == 0 {
                self.collect(&String::from_utf8_lossy(&one), 1, named)?;
                continue;
            }
            match Url::parse(&one) {
                Ok(url) => named.urls.push(url),
                Err(why) => {
                    named.invalid += 1;
                    err(&format!("bolide: {sitemap}: {why}"));
                }
            }
        }
        Ok(())
    }
}

/// The contents of the `loc` elements of a sitemap; of a text without any, its lines.
fn locations(text: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(text);
    let mut found = Vec::new();
    for part in text.split("<loc>").skip(1) {
        let one = part.split("</loc>").next().unwrap_or_default().trim();
        let literal = one.strip_prefix("<![CDATA[").and_then(|one| one.strip_suffix("]]>"));
        let one = literal.map_or_else(|| dereferenced(one), str::to_owned);
        found.push(one.trim().as_bytes().to_vec());
    }
    if found.is_empty() {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| line.starts_with("http"));
        found.extend(lines.map(|line| line.as_bytes().to_vec()));
    }
    found
}

/// `text` with the characters that its references mean (XML 1.0 §4.1, §4.6); others stay as they
/// are.
fn dereferenced(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once('&') {
        out.push_str(before);
        let meant = reference.split_once(';').and_then(|(name, after)| {
            let code = |digits, radix| u32::from_str_radix(digits, radix).ok();
            let one = match name {
                "apos" => '\'',
                "quot" => '"',
                "lt" => '<',
                "gt" => '>',
                "amp" => '&',
                _ => char::from_u32(match name.strip_prefix("#x") {
                    Some(digits) => code(digits, 16)?,
                    None => code(name.strip_prefix('#')?, 10)?,
                })?,
            };
            Some((one, after))
        });
        let (one, after) = meant.unwrap_or(('&', reference));
        out.push(one);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The data of chunks (RFC 9112 §7.1); `None` if they are malformed.
fn unchunked(text: &[u8]) -> Option<Vec<u8>> {
    let (mut rest, mut out) = (text, Vec::new());
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = rest[..end].split(|byte| *byte == b';').next()?.trim_ascii();
        let size = usize::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()?;
        if size == 0 {
            return Some(out);
        }
        rest = &rest[end + 2..];
        out.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size + 2..)?;
    }
}

/// The head of a response: status, and its cache fields.
fn read_head(reader: &mut impl std::io::BufRead) -> Result<Page, String> {
    let mut head = reader.take(HEAD_MAX);
    let mut line = Vec::new();
    let mut next = |line: &mut Vec<u8>| {
        line.clear();
        head.read_until(b'\n', line).map_err(|error| error.to_string())
    };
    next(&mut line)?;
    let status = line.split(|byte| *byte == b' ').nth(1).map(<[u8]>::trim_ascii);
    let status = status.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    let mut page =
        Page { status: status.ok_or("no answer came")?, cache: String::new(), is_chunked: false };
    while next(&mut line)? > 0 {
        let text = line.trim_ascii();
        if text.is_empty() {
            return Ok(page);
        }
        let Some(colon) = text.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (text[..colon].to_ascii_lowercase(), text[colon + 1..].trim_ascii());
        if matches!(&*name, b"x-litespeed-cache" | b"x-cache") {
            page.cache = String::from_utf8_lossy(value).into_owned();
        }
        if name == b"cache-status" && page.cache.is_empty() {
            // RFC 9211 §2: whether the cache stored it, or had it.
            let has = |word: &str| String::from_utf8_lossy(value).contains(word);
            page.cache = if has("; hit") {
                "hit"
            } else if has("; stored") {
                "miss"
            } else {
                ""
            }
            .into();
        }
        page.is_chunked |= name == b"transfer-encoding" && value.eq_ignore_ascii_case(b"chunked");
    }
    Err("the head of the answer does not end".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{locations, read_head, unchunked};

    #[test]
    fn chunks_are_put_together() {
        assert_eq!(unchunked(b"3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n"), Some(b"abcd".to_vec()));
        assert_eq!(unchunked(b"3\r\nab"), None);
        assert_eq!(unchunked(b"x\r\n"), None);
    }

    #[test]
    fn sitemaps_name_pages() {
        let xml = b"<?xml version=\"1.0\"?><urlset><url><loc> http://a.test/?a=1&amp;b=2 </loc>\
                    </url>\n<url><loc><![CDATA[http://a.test/x]]></loc></url></urlset>";
        let found: Vec<String> =
            locations(xml).into_iter().map(|one| String::from_utf8(one).unwrap()).collect();
        assert_eq!(found, ["http://a.test/?a=1&b=2", "http://a.test/x"]);
        let references =
            b"<loc>http://a.test/?a=1&#38;b=%26&#x26;c=&#x20AC;&amp;lt;&no;&#xD800;&</loc>\
                           <loc><![CDATA[/?a&amp;b]]></loc>";
        let found = locations(references);
        assert_eq!(found[0], "http://a.test/?a=1&b=%26&c=€&lt;&no;&#xD800;&".as_bytes());
        assert_eq!(found[1], b"/?a&amp;b");
        assert_eq!(locations(b"http://a.test/\n# no\nhttps://b.test/\n").len(), 2);
        assert!(locations(b"nothing").is_empty());
    }

    #[test]
    fn heads_say_what_became_of_a_page() {
        let head = b"HTTP/1.1 200 OK\r\nX-LiteSpeed-Cache: hit,private\r\n\r\nbody";
        let page = read_head(&mut &head[..]).unwrap();
        assert_eq!((page.status, &*page.cache), (200, "hit,private"));
        assert!(read_head(&mut &b"HTTP/1.1 200 OK\r\nA: b\r\n"[..]).is_err());
        assert!(read_head(&mut &b""[..]).is_err());
    }
}
