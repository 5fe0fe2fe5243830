//! Pages that are assembled from fragments, two levels deep: the output of the application, and
//! which responses are correct when some of the fragments fail.

use crate::deeds::{Deeds, application_answer};

/// A page or a fragment: the token of its reader, bytes of its filling, levels below it.
#[derive(Clone, Debug)]
pub struct AssemblyPiece {
    token: String,
    size: usize,
    depth: u8,
}

impl AssemblyPiece {
    /// The page that a client asks for by `token`.
    #[must_use]
    pub const fn page(token: String, size: usize, depth: u8) -> Self {
        Self { token, size, depth }
    }

    /// The piece that is asked for by `token` and what follows it in the query.
    #[must_use]
    pub fn asked(token: &str, rest: &str) -> Option<Self> {
        let (size, depth) = rest.split_once('e')?;
        let (size, depth) = (size.parse().ok()?, depth.parse().ok()?);
        Some(Self { token: token.to_owned(), size, depth })
    }

    /// The piece at an address, if one is there.
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

    /// What the application says in the head: some fragments are kept.
    #[must_use]
    pub fn head(&self) -> &'static str {
        match (self.depth, self.size % 2) {
            (0, 0) => "X-LiteSpeed-Cache-Control: public,max-age=60\r\n",
            (0, _) => "",
            (_, 0) => "X-LiteSpeed-Cache-Control: public,max-age=60,esi=on\r\n",
            (_, _) => "X-LiteSpeed-Cache-Control: no-cache,esi=on\r\n",
        }
    }

    /// What the application says in the body.
    #[must_use]
    pub fn source(&self) -> Vec<u8> {
        let mut source = application_answer(&self.token, self.size, 0);
        for fragment in self.fragments() {
            source.extend(format!("<esi:include src='{}'/>", fragment.target()).into_bytes());
            source.extend(self.between());
        }
        source
    }

    fn between(&self) -> Vec<u8> {
        format!("\nback in {}\n", self.token).into_bytes()
    }

    /// Whether some part of it may have been cut.
    #[must_use]
    pub fn may_be_cut(&self, deeds: &Deeds) -> bool {
        deeds.cut(&self.token) || self.fragments().any(|fragment| fragment.may_be_cut(deeds))
    }

    /// Whether `body` is the page, less fragments that may have failed.
    #[must_use]
    pub fn is_right(&self, body: &[u8], deeds: &Deeds) -> bool {
        self.rests(body, deeds).contains(&0)
    }

    /// Bytes that may be left of `body` behind this piece.
    fn rests(&self, body: &[u8], deeds: &Deeds) -> Vec<usize> {
        let mut rests = Vec::new();
        let own = application_answer(&self.token, self.size, 0);
        let Some(rest) = body.strip_prefix(&own[..]) else { return rests };
        rests.push(rest.len());
        for fragment in self.fragments() {
            let mut next = Vec::new();
            for left in rests {
                let at = &body[body.len() - left..];
                let mut after = fragment.rests(at, deeds);
                if deeds.spoils(&fragment.token) {
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
