//! Scripts for the whole machine: bytes in, events and bytes out.

mod bodies;
mod connections;
mod properties;
mod refusals;
mod requests;
mod responses;
mod tunnels;

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_http::{BodyLen, RequestHead, ResponseHead};

use super::{H1Conn, H1Settings, Replies};
use crate::{
    BodySource, HeadPool, Pull, RespondError, StreamId, StreamOwner, WireEvent, WireRefusal,
};

/// Bodies that give prepared pieces.
#[derive(Default)]
struct Pieces(Vec<(&'static [u8], Pull)>);

impl BodySource for Pieces {
    fn pull(&mut self, _user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        let (bytes, pull) = self.0.remove(0);
        assert!(bytes.len() <= max, "{} > {max}", bytes.len());
        out.push_bytes(&bytes::Bytes::from_static(bytes));
        pull
    }
}

/// A connection with its surroundings.
struct Bench {
    conn: H1Conn,
    settings: H1Settings,
    heads: HeadPool,
    replies: Replies,
    events: Vec<WireEvent>,
}

impl Bench {
    fn new() -> Self {
        Self::with(H1Settings::default())
    }

    fn with(settings: H1Settings) -> Self {
        Self {
            conn: H1Conn::new(),
            settings,
            heads: HeadPool::default(),
            replies: Replies::default(),
            events: Vec::new(),
        }
    }

    fn respond(&mut self, stream: StreamId, head: &ResponseHead) -> Result<(), RespondError> {
        self.conn.respond(stream, head, &mut self.replies)
    }

    fn receive(&mut self, input: &[u8]) -> usize {
        self.conn.receive(&self.settings, input, &mut self.heads, &mut self.events)
    }

    /// Feeds a whole request head and returns it; binds the stream to 7.
    fn request(&mut self, input: &[u8]) -> (StreamId, Box<RequestHead>) {
        self.receive(input);
        match self.events.pop() {
            Some(WireEvent::Request { stream, head }) => {
                self.conn.bind(stream, 7);
                (stream, head)
            }
            other => panic!("not a request: {other:?}"),
        }
    }

    fn transmit(&mut self, bodies: &mut Pieces) -> String {
        self.transmit_woven(CopyPolicy::Contiguous, 4096, bodies)
    }

    fn transmit_woven(&mut self, weave: CopyPolicy, room: usize, bodies: &mut Pieces) -> String {
        let mut out = SendChain::new(weave);
        self.conn.transmit(room, &mut out, &mut self.events, bodies);
        text_of(&out)
    }

    /// Responds with a short body and returns the output.
    fn answer(&mut self, stream: StreamId, body: &'static [u8]) -> String {
        self.respond(stream, &head(200, BodyLen::Exact(body.len() as u64))).unwrap();
        self.transmit(&mut Pieces(vec![(body, Pull::End)]))
    }

    fn event_names(&mut self) -> Vec<&'static str> {
        self.events
            .drain(..)
            .map(|event| match event {
                WireEvent::Request { .. } => "request",
                WireEvent::Refused { .. } => "refused",
                WireEvent::Body { .. } => "body",
                WireEvent::BodyEnd { .. } => "end",
                WireEvent::BodyRefused { .. } => "body refused",
                WireEvent::Reset { .. } => "reset",
                WireEvent::Sent { .. } => "sent",
            })
            .collect()
    }
}

fn head(status: u16, body: BodyLen) -> ResponseHead {
    ResponseHead { status, body, ..ResponseHead::default() }
}

fn text_of(out: &SendChain) -> String {
    let bytes: Vec<u8> = out
        .segments()
        .iter()
        .flat_map(|segment| match segment {
            bolide_base::Segment::Inline(start, end) => out.inline(*start, *end).to_vec(),
            bolide_base::Segment::Bytes(bytes) => bytes.to_vec(),
            bolide_base::Segment::File(_) => panic!("no file was pushed"),
        })
        .collect();
    String::from_utf8(bytes).unwrap()
}

/// The refusal of `input` by a new connection, if it refuses.
fn refusal_of(settings: &H1Settings, input: &[u8]) -> Option<WireRefusal> {
    let mut bench = Bench::with(settings.clone());
    assert!(bench.receive(input) <= input.len());
    bench.events.iter().find_map(|event| match event {
        WireEvent::Refused { refusal, .. } => Some(*refusal),
        _ => None,
    })
}
