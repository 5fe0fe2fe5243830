//! Responses as clients would see them, and how their bodies are pulled.

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_engine::{BodyPiece, Exchange, FileOwner};
use bolide_http::{BodyLen, Method, ResponseHead};

use crate::disk::FuzzIo;
use crate::fragments::Fragments;
use crate::upstream::FuzzUpstream;

/// An answer as a client would see it.
#[derive(Clone, Debug)]
pub struct WorldReply {
    /// The status; 0 when the connection was closed without an answer.
    pub status: u16,
    /// Names and values, in order.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// How the body's length was told.
    pub len: BodyLen,
    /// Whether the connection closes.
    pub close: bool,
    /// Whether the request body is thrown away.
    pub discards: bool,
    /// Whether the body was cut off.
    pub is_broken: bool,
    /// The fields of each 103 before it.
    pub interim: Vec<Vec<(String, String)>>,
}

impl WorldReply {
    /// The first field called `name`, or the empty text.
    #[must_use]
    pub fn field(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn check(&self, method: Method) {
        match self.len {
            BodyLen::Exact(len) if method != Method::Head => {
                assert_eq!(len, self.body.len() as u64, "the body has the declared length");
            }
            BodyLen::Unknown if method != Method::Head => {}
            _ => assert!(self.body.is_empty(), "no body was declared"),
        }
    }
}

pub(crate) fn fields_of(head: &ResponseHead) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    head.fields.iter().map(|field| (text(field.text), text(field.value))).collect()
}

/// What one look for bytes of a body gave.
pub(crate) enum WorldPulled {
    Some,
    Nothing,
    All,
    Broken,
}

/// Pulls once, reading files where the body wants it.
pub(crate) fn pull(
    exchange: &mut Exchange,
    max: usize,
    door: &FuzzIo,
    origin: &FuzzUpstream,
    fragments: &mut Fragments,
    reply: &mut WorldReply,
) -> WorldPulled {
    let mut out = SendChain::new(CopyPolicy::Contiguous);
    let piece = exchange.response_body().pull(max, &mut out);
    reply.body.extend_from_slice(out.contiguous().unwrap_or_default());
    match piece {
        BodyPiece::More | BodyPiece::Later => {}
        BodyPiece::Fragment(name) => fragments.give(exchange, name, max),
        BodyPiece::Pending => return WorldPulled::Nothing,
        BodyPiece::End => return WorldPulled::All,
        BodyPiece::Broken => return WorldPulled::Broken,
        BodyPiece::File { file, offset, len, whose: FileOwner::Transit } => {
            let part = origin.read(&file, offset, len).expect("the file was written so far");
            reply.body.extend_from_slice(part);
            exchange.response_body().advance(len);
        }
        BodyPiece::File { file, offset, len, .. } => {
            let content = door.content_of(&file).expect("the file is on the disk");
            reply.body.extend_from_slice(&content[offset as usize..(offset + len) as usize]);
            exchange.response_body().advance(len);
        }
        BodyPiece::Read { file, offset, len, .. } => {
            let content = door.content_of(&file).expect("the file is on the disk");
            exchange.response_body().feed(&content[offset as usize..(offset + len) as usize]);
        }
    }
    WorldPulled::Some
}
pub(crate) const fn no_reply() -> WorldReply {
    WorldReply {
        status: 0,
        fields: Vec::new(),
        body: Vec::new(),
        len: BodyLen::None,
        close: true,
        discards: false,
        is_broken: false,
        interim: Vec::new(),
    }
}
