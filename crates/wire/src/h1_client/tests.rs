//! Scripts and properties: bytes in, events and bytes out, as nginx 1.30 does.

mod answers;
mod properties;
mod requests;
mod tunnels;

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_http::UpstreamHead;

use super::H1Client;
use crate::origin::fuzz::{FuzzAsk, UpstreamStory, http_head};
use crate::{BodySource, OriginConn, OriginConnSettings, OriginEvent, Pull, StreamOwner};

/// A `GET`.
fn get() -> FuzzAsk {
    let mut head = http_head(b"GET", b"/");
    head.push(b"Host", b"origin");
    FuzzAsk::of(head)
}

/// Runs one response, whole and in pieces of several sizes.
fn tell(ask: &FuzzAsk, bytes: &[u8]) -> UpstreamStory {
    let mut whole = UpstreamStory::tell(OriginConn::http, ask, &[bytes]);
    let told = whole.told.clone();
    whole.forget_warnings();
    for size in [1, 2, 5, 8, 13] {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        let mut pieces = UpstreamStory::tell(OriginConn::http, ask, &pieces);
        pieces.forget_warnings();
        assert_eq!(whole, pieces, "in pieces of {size}");
    }
    whole.told = told;
    whole
}

fn told(bytes: &[u8]) -> Vec<String> {
    tell(&get(), bytes).told
}

/// Bodies that give prepared pieces.
struct Pieces(Vec<(&'static [u8], Pull)>);

impl BodySource for Pieces {
    fn pull(&mut self, _user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        let (bytes, pull) = self.0.remove(0);
        assert!(bytes.len() <= max, "{} > {max}", bytes.len());
        out.push_slice(bytes);
        pull
    }
}

/// All output until there is no more.
fn transmit(client: &mut H1Client, pieces: &mut Pieces) -> String {
    let mut out = SendChain::new(CopyPolicy::Contiguous);
    client.transmit(1 << 20, &mut out, 7, pieces);
    let bytes = out.contiguous().expect("only slices were pushed");
    String::from_utf8(bytes.to_vec()).expect("tests send text")
}

fn begun(head: &UpstreamHead, body_len: Option<u64>) -> H1Client {
    let mut client = H1Client::new();
    let settings = OriginConnSettings { keep: true, ..OriginConnSettings::default() };
    client.start(head, body_len, &settings);
    client
}

/// The bytes of all bodies among these events.
fn body_of(events: &[OriginEvent]) -> Vec<u8> {
    let mut body = Vec::new();
    for event in events {
        if let OriginEvent::Body(bytes) = event {
            body.extend_from_slice(bytes);
        }
    }
    body
}
