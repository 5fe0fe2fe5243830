//! An operator's description of a request, and the request that it means.

use bolide_conf::model::{Listen, ListenAddress, ListenTransport};
use bolide_http::Scheme;

use super::{ExplainRequest, Url, listen_of};
use crate::site::Site;

/// The description of a request.
#[derive(Clone, Debug, Default)]
pub struct ExplainUrl<'a> {
    /// Its URL.
    pub url: &'a [u8],
    /// Its method; none is `GET`.
    pub method: Option<&'a [u8]>,
    /// Its cookies, `name=value`.
    pub cookies: Vec<&'a [u8]>,
    /// Its other headers, `Name: value`.
    pub headers: Vec<&'a [u8]>,
    /// The client's address; by default this machine's.
    pub from: Option<&'a [u8]>,
    /// The address or port that it reaches; by default the URL's port.
    pub listen: Option<&'a [u8]>,
}

fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl ExplainUrl<'_> {
    /// The request that `site` would receive.
    ///
    /// # Errors
    ///
    /// What is invalid, in words.
    pub fn question(&self, site: &Site) -> Result<ExplainRequest, String> {
        let url = Url::parse(self.url)?;
        let listen = self.listen(&url, site)?;
        let local = match &site.listens()[listen].address {
            ListenAddress::Inet(addr) => {
                let mut addr = *addr;
                if addr.ip().is_unspecified() {
                    addr.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
                }
                addr
            }
            ListenAddress::Unix(_) => ([127, 0, 0, 1], 0).into(),
        };
        let remote = match self.from.map(show) {
            Some(text) => text.parse().map_err(|_| format!("\"{text}\" is no address"))?,
            None => std::net::Ipv4Addr::LOCALHOST.into(),
        };
        let mut fields = Vec::new();
        if !self.cookies.is_empty() {
            fields.push((b"Cookie".to_vec(), self.cookies.join(&b"; "[..])));
        }
        let mut authority = url.authority.clone();
        for line in &self.headers {
            let wrong = || format!("\"{}\" is no header", show(line));
            let colon = line.iter().position(|byte| *byte == b':').ok_or_else(wrong)?;
            let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
            if name.is_empty() || value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
                return Err(wrong());
            }
            if name.eq_ignore_ascii_case(b"host") {
                authority = value.to_vec();
            } else {
                fields.push((name.to_vec(), value.to_vec()));
            }
        }
        Ok(ExplainRequest {
            method: self.method.unwrap_or(b"GET").to_vec(),
            scheme: url.scheme,
            authority,
            target: url.target,
            fields,
            listen,
            local,
            remote,
        })
    }

    /// The listen that a URL reaches.
    fn listen(&self, url: &Url, site: &Site) -> Result<usize, String> {
        if let Some(wanted) = self.listen.map(show) {
            let known = |listen: &Listen| {
                listen.address.to_string() == wanted
                    || wanted.parse() == Ok(listen.address.port()) && listen.address.port() != 0
            };
            return site
                .listens()
                .iter()
                .position(known)
                .ok_or_else(|| format!("no listener on \"{wanted}\": {}", addresses(site)));
        }
        listen_of(site, url.scheme, url.port, &url.host).ok_or_else(|| {
            let what = if url.scheme == Scheme::Https { "https" } else { "http" };
            let (port, all) = (url.port, addresses(site));
            format!("no listener on port {port} for {what}: {all}; --listen selects one")
        })
    }
}

fn addresses(site: &Site) -> String {
    let tcp = |listen: &&Listen| listen.transport == ListenTransport::Tcp;
    let name = |listen: &Listen| {
        let what = if listen.tls { "https" } else { "http" };
        format!("{} ({what})", listen.address)
    };
    let all: Vec<String> = site.listens().iter().filter(tcp).map(name).collect();
    match all.is_empty() {
        true => "there is no address".to_owned(),
        false => format!("there are {}", all.join(", ")),
    }
}
