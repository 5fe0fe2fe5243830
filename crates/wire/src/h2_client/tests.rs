//! Scripts and properties: bytes in, events and bytes out, as nginx 1.30 does.

mod answers;
mod connections;
mod properties;
mod requests;

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;

use super::H2Client;
use crate::origin::fuzz::{FuzzAsk, UpstreamStory, http2_head};
use crate::{BodySource, OriginConn, OriginConnSettings, OriginEvent, Pull, StreamOwner};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

/// `END_STREAM`, and `ACK`.
const END: u8 = 1;
/// `END_HEADERS`
const WHOLE: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    [&[a, b, c, kind, flags, d, e, f, g], payload].concat()
}

/// A field block without compression.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        for text in [name, value] {
            assert!(text.len() < 127, "one byte tells the length");
            bytes.push(text.len() as u8);
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    // Each field is a literal that is not indexed.
    let mut marked = Vec::new();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let name = 1 + usize::from(rest[0]);
        let value = 1 + usize::from(rest[name]);
        marked.push(0);
        marked.extend_from_slice(&rest[..name + value]);
        rest = &rest[name + value..];
    }
    marked
}

/// A head on stream 1 that a body follows.
fn head(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, WHOLE, 1, &block(fields))
}

fn ok() -> Vec<u8> {
    head(&[(":status", "200"), ("content-type", "application/grpc")])
}

fn trailers() -> Vec<u8> {
    frame(HEADERS, WHOLE | END, 1, &block(&[("grpc-status", "0")]))
}

fn data(text: &[u8]) -> Vec<u8> {
    frame(DATA, 0, 1, text)
}

fn last_data(text: &[u8]) -> Vec<u8> {
    frame(DATA, END, 1, text)
}

/// A call without a message.
fn call() -> FuzzAsk {
    FuzzAsk::of(http2_head(b"POST", b"/a.B/C"))
}

/// Runs one response, whole and in pieces of several sizes.
fn tell(ask: &FuzzAsk, bytes: &[u8]) -> UpstreamStory {
    let whole = UpstreamStory::tell(OriginConn::http2, ask, &[bytes]);
    for size in [1, 2, 5, 8, 13] {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        let pieces = UpstreamStory::tell(OriginConn::http2, ask, &pieces);
        assert_eq!(whole, pieces, "in pieces of {size}");
    }
    whole
}

fn told(frames: &[Vec<u8>]) -> Vec<String> {
    tell(&call(), &frames.concat()).told
}

/// A body that gives what is pushed into it.
#[derive(Default)]
struct Pushed {
    bytes: Vec<u8>,
    is_complete: bool,
}

impl BodySource for Pushed {
    fn pull(&mut self, _user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        let size = self.bytes.len().min(max);
        out.push_slice(&self.bytes[..size]);
        self.bytes.drain(..size);
        match (size > 0, self.bytes.is_empty() && self.is_complete) {
            (_, true) => Pull::End,
            (true, false) => Pull::More,
            (false, false) => Pull::Pending,
        }
    }
}

/// A client that began a call with a body of this length.
fn begun(body_len: Option<u64>) -> H2Client {
    let mut client = H2Client::new();
    begin(&mut client, body_len);
    client
}

fn begin(client: &mut H2Client, body_len: Option<u64>) {
    let settings = OriginConnSettings { keep: true, ..OriginConnSettings::default() };
    client.start(&http2_head(b"POST", b"/a.B/C"), body_len, &settings);
}

/// All output until there is no more: kind, flags, stream and payload of each frame.
fn transmit(client: &mut H2Client, body: &mut Pushed) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut out = SendChain::new(CopyPolicy::Contiguous);
    client.transmit(1 << 20, &mut out, 7, body);
    let bytes = out.contiguous().expect("only slices were pushed");
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut rest = bytes.strip_prefix(preface).unwrap_or(bytes);
    let mut frames = Vec::new();
    while let [a, b, c, kind, flags, d, e, f, g, ..] = *rest {
        let len = u32::from_be_bytes([0, a, b, c]) as usize;
        frames.push((kind, flags, u32::from_be_bytes([d, e, f, g]), rest[9..9 + len].to_vec()));
        rest = &rest[9 + len..];
    }
    frames
}

/// Kind, flags and length of each frame.
fn shape(frames: &[(u8, u8, u32, Vec<u8>)]) -> Vec<(u8, u8, usize)> {
    frames.iter().map(|(kind, flags, _, payload)| (*kind, *flags, payload.len())).collect()
}

fn receive(client: &mut H2Client, bytes: &[u8]) -> Vec<OriginEvent> {
    let mut events = Vec::new();
    client.receive(bytes, &mut events).expect("the upstream does as it should");
    events
}
