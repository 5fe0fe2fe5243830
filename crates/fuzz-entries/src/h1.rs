//! The HTTP/1 machine with arbitrary bytes, and its invariants.
//!
//! The driver acts as the owner of a connection (stores bytes, binds, responds, pulls) without a
//! socket.

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_base::limits::BODY_WINDOW;
use bolide_http::{BodyLen, Name, ResponseHead};

use bolide_wire::h1::{H1Conn, H1Settings, Replies};
use bolide_wire::{BodySource, HeadPool, Pull, StreamId, StreamOwner, WireEvent};

/// Feeds `data` whole and in pieces, and checks that both have the same result. The first byte
/// chooses the pieces and the responses.
///
/// # Panics
///
/// An invariant does not hold.
pub fn fuzz(data: &[u8]) {
    let Some((&seed, input)) = data.split_first() else { return };
    let settings = H1Settings {
        large_buffer_size: 300,
        underscores_in_headers: seed & 1 == 0,
        ignore_invalid_headers: seed & 2 == 0,
        keepalive_requests: 20,
        ..H1Settings::default()
    };
    let whole = H1Story::tell(&settings, seed, input, input.len().max(1));
    let pieces = H1Story::tell(&settings, seed, input, 1 + usize::from(seed) % 9);
    assert_eq!(whole, pieces, "the cut of the input changes its meaning");
}

/// The events that the owner of a connection gets, and the bytes sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct H1Story {
    /// Requests and refusals as text.
    pub(super) heads: Vec<String>,
    /// Request bodies in sequence, with `.` for each end and `!` for each failure.
    pub(super) bodies: Vec<u8>,
    /// Bytes sent.
    pub(super) output: Vec<u8>,
    /// Completed responses.
    pub(super) sent: usize,
    /// Whether a response was truncated.
    pub(super) broken: bool,
}

/// An owner and its connection.
struct Owner<'a> {
    settings: &'a H1Settings,
    seed: u8,
    conn: H1Conn,
    heads: HeadPool,
    replies: Replies,
    events: Vec<WireEvent>,
    kept: Vec<u8>,
    body: Body,
    stream: StreamId,
    story: H1Story,
}

/// A body that arrives in pieces, with pauses.
#[derive(Default)]
struct Body {
    left: usize,
    pause: bool,
    /// A tunnel sends nothing before its client is done.
    waits: bool,
}

impl BodySource for Body {
    fn pull(&mut self, _user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        self.pause = !self.pause;
        if self.pause || self.waits {
            return Pull::Pending;
        }
        let piece = self.left.min(max).min(7);
        out.push_slice(&b"zyxwvut"[..piece]);
        self.left -= piece;
        if self.left == 0 { Pull::End } else { Pull::More }
    }
}

impl H1Story {
    /// Feeds `input` in pieces of `cut` bytes, and then the end of input.
    pub(super) fn tell(settings: &H1Settings, seed: u8, input: &[u8], cut: usize) -> Self {
        let mut owner = Owner {
            settings,
            seed,
            conn: H1Conn::new(),
            heads: HeadPool::default(),
            replies: Replies::default(),
            events: Vec::new(),
            kept: Vec::new(),
            body: Body::default(),
            stream: StreamId(0),
            story: Self::default(),
        };
        for piece in input.chunks(cut) {
            owner.kept.extend_from_slice(piece);
            owner.turn();
        }
        owner.conn.handle_eof(&mut owner.events);
        owner.turn();
        owner.story.broken = owner.conn.is_broken();
        assert!(owner.conn.is_closing(), "after the end of input nothing is left to do");
        owner.story
    }
}

impl Owner<'_> {
    /// Runs until there is no progress.
    fn turn(&mut self) {
        loop {
            let used =
                self.conn.receive(self.settings, &self.kept, &mut self.heads, &mut self.events);
            assert!(used <= self.kept.len(), "more was consumed than there was");
            self.kept.drain(..used);
            let mut moved = used > 0 || !self.events.is_empty();
            self.take_events();
            moved |= self.transmit();
            if !moved {
                return;
            }
        }
    }

    fn transmit(&mut self) -> bool {
        let weave = if self.seed & 4 == 0 { CopyPolicy::Contiguous } else { CopyPolicy::Shared(4) };
        let mut out = SendChain::new(weave);
        let mut moved = false;
        self.body_ready();
        while self.conn.has_output() {
            let room = 1 + usize::from(self.seed);
            self.conn.transmit(room, &mut out, &mut self.events, &mut self.body);
            self.body_ready();
            moved = true;
        }
        self.story.output.extend_from_slice(out.contiguous().expect("only slices were pushed"));
        self.take_events();
        moved
    }

    fn body_ready(&mut self) {
        if !self.body.waits {
            self.conn.body_ready(self.stream);
        }
    }

    fn take_events(&mut self) {
        for event in std::mem::take(&mut self.events) {
            match event {
                WireEvent::Request { stream, head } => {
                    let fields: Vec<_> = head.fields.iter().map(|f| (f.text, f.value)).collect();
                    self.story.heads.push(format!(
                        "{:?} {:?} {:?} {:?} {:?} {} {fields:?}",
                        head.line.escape_ascii().to_string(),
                        head.target.escape_ascii().to_string(),
                        head.authority.escape_ascii().to_string(),
                        head.body,
                        head.expects_continue,
                        head.wire_size,
                    ));
                    self.accept(stream);
                    if self.seed & 16 == 16 && head.fields.get(Name::Upgrade).is_some() {
                        self.answer(101);
                    } else if self.seed & 8 == 0 || head.body == bolide_http::RequestBody::None {
                        self.answer(200);
                    } else {
                        self.conn.send_continue(stream);
                    }
                    self.heads.put(head);
                }
                WireEvent::Refused { stream, head, refusal } => {
                    self.story.heads.push(format!("{} {}", refusal.status, refusal.reason));
                    self.accept(stream);
                    self.answer(refusal.status);
                    self.heads.put(head);
                }
                WireEvent::Body { user, bytes } => {
                    assert_eq!(user, self.stream.0, "a body event finds its user bound");
                    assert!(bytes.len() <= BODY_WINDOW as usize);
                    self.story.bodies.extend_from_slice(&bytes);
                    self.conn.body_consumed(self.stream, bytes.len());
                }
                WireEvent::BodyEnd { .. } => {
                    self.story.bodies.push(b'.');
                    self.body.waits = false;
                    self.answer(200);
                }
                WireEvent::BodyRefused { refusal, .. } => {
                    self.story.bodies.push(b'!');
                    self.answer(refusal.status);
                }
                WireEvent::Reset { .. } => self.story.bodies.push(b'!'),
                WireEvent::Sent { .. } => self.story.sent += 1,
            }
        }
    }

    fn accept(&mut self, stream: StreamId) {
        assert_eq!(stream.0, self.stream.0 + 1, "requests come one by one, in order");
        self.stream = stream;
        self.conn.bind(stream, stream.0);
    }

    /// Responds, unless it has responded already.
    fn answer(&mut self, status: u16) {
        let len = (self.stream.0 * 5 % 17) as usize;
        let body = if status == 101 || self.stream.0.is_multiple_of(3) {
            BodyLen::Unknown
        } else {
            BodyLen::Exact(len as u64)
        };
        let mut head = ResponseHead { status, body, ..ResponseHead::default() };
        head.fields.push(Name::Server, b"s");
        if self.conn.respond(self.stream, &head, &mut self.replies).is_ok() {
            let waits = self.conn.is_tunnel();
            self.body = Body { left: len, pause: false, waits };
        }
    }
}
