//! Pages that are assembled from fragments, two levels deep: the output of the application, and
//! which responses are correct when some of the fragments fail.

use crate::fault_record::{FaultRecord, application_response};

/// A page or a fragment: its token, the number of filler bytes, and the fragment levels below it.
#[derive(Clone, Debug)]
pub struct AssemblyPiece {
    token: String,
    size: usize,
    depth: u8,
}

impl AssemblyPiece {
    /// The page that a client requests with `token`.
    #[must_use]
    pub const fn page(token: String, size: usize, depth: u8) -> Self {
        Self { token, size, depth }
    }

    /// The page or fragment that a query names: `token` and the rest of the query.
    #[must_use]
    pub fn asked(token: &str, rest: &str) -> Option<Self> {
        let (size, depth) = rest.split_once('e')?;
        let (size, depth) = (size.parse().ok()?, depth.parse().ok()?);
        Some(Self { token: token.to_owned(), size, depth })
    }

    /// The page or fragment at a URL, if the URL names one.
    #[must_use]
    pub fn at(url: &str) -> Option<Self> {
        let (_, query) = url.split_once("/esi?")?;
        let (token, rest) = query.split_once('&')?;
        Self::asked(token, rest)
    }

    /// Path and query.
    #[must_use]
    pub fn target(&self) -> String {
        format!("/esi?{}&{}e{}", self.token, self.size, self.depth)
    }

    fn fragments(&self) -> impl Iterator<Item = Self> {
        let names = if self.depth > 0 { ["x", "y", "z"].as_slice() } else { &[] };
        names.iter().enumerate().map(|(at, name)| Self {
            token: format!("{}{name}", self.token),
            size: self.size / (at + 2),
            depth: self.depth - 1,
        })
    }

    /// The application's response head. Some fragments are cacheable.
    #[must_use]
    pub fn head(&self) -> &'static str {
        match (self.depth, self.size % 2) {
            (0, 0) => "X-LiteSpeed-Cache-Control: public,max-age=60\r\n",
            (0, _) => "",
            (_, 0) => "X-LiteSpeed-Cache-Control: public,max-age=60,esi=on\r\n",
            (_, _) => "X-LiteSpeed-Cache-Control: no-cache,esi=on\r\n",
        }
    }

    /// The application's response body, with ESI elements.
    #[must_use]
    pub fn source(&self) -> Vec<u8> {
        let mut source = application_response(&self.token, self.size, 0);
        for fragment in self.fragments() {
            source.extend(format!("<esi:include src='{}'/>", fragment.target()).into_bytes());
            source.extend(self.between());
        }
        source
    }

    fn between(&self) -> Vec<u8> {
        format!("\nback in {}\n", self.token).into_bytes()
    }

    /// Whether some part of the page may be truncated.
    #[must_use]
    pub fn may_be_cut(&self, fault_record: &FaultRecord) -> bool {
        fault_record.may_truncate(&self.token)
            || self.fragments().any(|fragment| fragment.may_be_cut(fault_record))
    }

    /// Whether `body` is the page, without fragments that may have failed.
    #[must_use]
    pub fn is_correct(&self, body: &[u8], fault_record: &FaultRecord) -> bool {
        self.rests(body, fault_record).contains(&0)
    }

    /// The possible lengths of the rest of `body` behind this page or fragment.
    fn rests(&self, body: &[u8], fault_record: &FaultRecord) -> Vec<usize> {
        let mut rests = Vec::new();
        let own = application_response(&self.token, self.size, 0);
        let Some(rest) = body.strip_prefix(&own[..]) else { return rests };
        rests.push(rest.len());
        for fragment in self.fragments() {
            let mut next = Vec::new();
            for left in rests {
                let at = &body[body.len() - left..];
                let mut after = fragment.rests(at, fault_record);
                if fault_record.may_fail(&fragment.token) {
                    after.push(left);
                }
                let between = self.between();
                next.extend(after.into_iter().filter_map(|left| {
                    let rest = body[body.len() - left..].strip_prefix(&between[..])?;
                    Some(rest.len())
                }));
            }
            next.sort_unstable();
            next.dedup();
            rests = next;
        }
        rests
    }
}
