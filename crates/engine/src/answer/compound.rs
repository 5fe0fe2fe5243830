//! A body that includes other responses: SSI pages, and what `addition` puts around bodies.
//!
//! Owns the order of texts and included responses, and how far a page is read ahead.
//! [`crate::content::parts`] executes the commands: reading stops at each. Easiest to break: as in
//! nginx, a page is read on before its subrequests run, so that they see the variables that it
//! sets.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_base::limits::FILTERED_PER_TURN;
use bolide_ssi::{Flow, SharedText, SsiEvent, SsiScanner};

use super::{AnswerBody, BodyPiece, Pulled};

/// LIMIT: unfinished subrequests of one body.
const AT_ONCE: usize = 8;
/// LIMIT: bytes of text that are read ahead of a subrequest.
const AHEAD: usize = 64 * 1024;
/// Bytes of the inner body per step.
const STEP: usize = 16 * 1024;

/// A subrequest to be started.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartOrder {
    /// The path, decoded.
    pub(crate) uri: Vec<u8>,
    /// The query.
    pub(crate) args: Option<Vec<u8>>,
    /// Whether reading of the page waits for its end.
    pub(crate) waits: bool,
    /// The variable that takes its response.
    pub(crate) set: Option<Vec<u8>>,
    /// The text that replaces an empty response.
    pub(crate) stub: Option<Arc<Vec<u8>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartState {
    New,
    /// An exchange with this key was started.
    Started(u64),
    /// Its head is there.
    HasHead(u64),
}

/// A subrequest at its place in the body.
#[derive(Debug)]
struct Part {
    order: PartOrder,
    state: PartState,
    /// Bytes that were received of it.
    len: u64,
    value: Vec<u8>,
    value_max: usize,
}

/// An item of the body, in order.
#[derive(Debug)]
enum Item {
    /// Text, and how many bytes of it were sent.
    Text(Vec<u8>, usize),
    Part(Box<Part>),
}

/// The reader of a page's commands.
#[derive(Debug)]
pub(crate) struct CompoundReader {
    scanner: SsiScanner,
    pub(crate) flow: Flow,
    pub(crate) shared: Rc<RefCell<SharedText>>,
    /// Bytes of the page, and how many of them were parsed.
    input: Vec<u8>,
    at: usize,
    /// The command that reading stopped at.
    found: Option<SsiEvent>,
}

/// A body that includes other responses.
#[derive(Debug)]
pub(crate) struct Compound {
    pub(crate) inner: AnswerBody,
    reader: Option<Box<CompoundReader>>,
    items: VecDeque<Item>,
    /// Bytes of text in `items`.
    held: usize,
    /// The block that replaces an empty page.
    stub: Option<Arc<Vec<u8>>>,
    /// The subrequest that follows the page.
    after: Option<PartOrder>,
    /// Whether the inner body is complete.
    is_over: bool,
    is_broken: bool,
    /// Why it will break, for the log.
    trouble: Option<String>,
    /// Bytes that were processed since the last `take_work`.
    pub(super) work: u64,
}

/// The configuration of `ssi` and `addition` for one body.
#[derive(Debug)]
pub(crate) struct PartsFilter {
    reader: Option<CompoundReader>,
    stub: Option<Arc<Vec<u8>>>,
    before: Option<PartOrder>,
    after: Option<PartOrder>,
    keeps_last_modified: bool,
}

impl PartsFilter {
    /// No parts yet.
    pub(crate) const fn new(keeps_last_modified: bool) -> Self {
        Self { reader: None, stub: None, before: None, after: None, keeps_last_modified }
    }

    /// Executes the commands that `reader` finds; `stub` replaces an empty page.
    pub(crate) fn read(&mut self, reader: CompoundReader, stub: Option<Arc<Vec<u8>>>) {
        (self.reader, self.stub) = (Some(reader), stub);
    }

    /// Adds subrequests before and after the body.
    pub(crate) fn surround(&mut self, before: Option<PartOrder>, after: Option<PartOrder>) {
        (self.before, self.after) = (before, after);
    }

    pub(super) const fn keeps_last_modified(&self) -> bool {
        self.keeps_last_modified
    }
}

impl CompoundReader {
    /// A reader for a page, or for a part of one, with their shared state.
    pub(crate) fn new(value_max: usize, shared: Rc<RefCell<SharedText>>) -> Self {
        let (scanner, flow) = (SsiScanner::new(value_max), Flow::default());
        Self { scanner, flow, shared, input: Vec::new(), at: 0, found: None }
    }

    fn has_input(&self) -> bool {
        self.at < self.input.len()
    }
}

impl Compound {
    /// `inner` with these parts.
    pub(crate) fn new(inner: AnswerBody, parts: PartsFilter) -> Self {
        let mut made = Self {
            inner,
            reader: parts.reader.map(Box::new),
            items: VecDeque::new(),
            held: 0,
            stub: parts.stub,
            after: parts.after,
            is_over: false,
            is_broken: false,
            trouble: None,
            work: 0,
        };
        parts.before.into_iter().for_each(|order| made.push_part(order));
        made
    }

    /// The last `config timefmt`, if there was one.
    pub(crate) fn time_format(&self) -> Option<&[u8]> {
        self.reader.as_ref().map(|reader| reader.flow.time_format())
    }

    /// The reader of the page; the caller puts it back.
    pub(crate) const fn reader_mut(&mut self) -> &mut Option<Box<CompoundReader>> {
        &mut self.reader
    }

    /// The command that reading stopped at.
    pub(crate) fn take_event(&mut self) -> Option<SsiEvent> {
        self.reader.as_mut()?.found.take()
    }

    /// Why the body breaks, if that is not logged yet.
    pub(crate) fn take_trouble(&mut self) -> Option<String> {
        let trouble = self.trouble.take();
        self.is_broken |= trouble.is_some();
        trouble
    }

    /// Appends text.
    pub(crate) fn push_text(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        self.held += text.len();
        match self.items.back_mut() {
            Some(Item::Text(last, _)) => last.extend_from_slice(text),
            _ => self.items.push_back(Item::Text(text.to_vec(), 0)),
        }
    }

    /// Appends a subrequest.
    pub(crate) fn push_part(&mut self, order: PartOrder) {
        let part = Part { order, state: PartState::New, len: 0, value: Vec::new(), value_max: 0 };
        self.items.push_back(Item::Part(Box::new(part)));
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.items.iter().filter_map(|item| match item {
            Item::Part(part) => Some(&**part),
            Item::Text(..) => None,
        })
    }

    fn part_mut(&mut self, is_it: impl Fn(&Part) -> bool) -> Option<&mut Part> {
        self.items.iter_mut().find_map(|item| match item {
            Item::Part(part) if is_it(part) => Some(&mut **part),
            _ => None,
        })
    }

    /// Whether commands or subrequests are pending.
    pub(crate) fn wants(&self) -> bool {
        !self.is_broken
            && (self.trouble.is_some() || self.is_stopped() || self.next_order().is_some())
    }

    /// Whether reading is stopped at a command.
    fn is_stopped(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.found.is_some())
    }

    /// The next subrequest to start.
    pub(crate) fn next_order(&self) -> Option<&PartOrder> {
        let ahead = self.parts().take(AT_ONCE);
        let next = ahead.into_iter().find(|part| part.state == PartState::New);
        next.filter(|_| !self.is_broken).map(|part| &part.order)
    }

    /// Binds it to an exchange.
    pub(crate) fn bind(&mut self, child: u64) {
        debug_assert!(!self.owns(child), "an exchange is asked for one answer");
        if let Some(part) = self.part_mut(|part| part.state == PartState::New) {
            part.state = PartState::Started(child);
        }
    }

    /// Whether the body breaks off here.
    pub(crate) const fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// It cannot be started.
    pub(crate) const fn refuse(&mut self) {
        self.is_broken = true;
    }

    /// Whether the exchange `child` belongs to this body.
    pub(crate) fn owns(&self, child: u64) -> bool {
        self.parts().any(|part| part.is_by(child))
    }

    /// Whether `child` is being sent.
    pub(crate) fn is_at(&self, child: u64) -> bool {
        matches!(self.items.front(), Some(Item::Part(part)) if part.is_by(child))
    }

    /// The head of a subrequest is there. For a variable, its body may have `value_max` bytes, or
    /// it is dropped. With `has_stub`, the subrequest itself provides the replacement of an empty
    /// body.
    pub(crate) fn accept(&mut self, child: u64, value_max: Option<usize>, has_stub: bool) {
        let Some(part) = self.part_mut(|part| part.is_by(child)) else { return };
        part.state = PartState::HasHead(child);
        part.value_max = value_max.unwrap_or(0);
        part.order.stub.take_if(|_| has_stub);
        if part.order.set.is_some() && value_max.is_none() {
            part.order.set = Some(Vec::new());
        }
    }

    /// A subrequest failed, before its head or later.
    pub(crate) fn lose(&mut self, child: u64) {
        self.is_broken |= self.owns(child);
    }

    /// Takes the bytes that were pulled of the subrequest that [`BodyPiece::Fragment`] named; false
    /// if it needs no more of them.
    pub(crate) fn take(&mut self, child: u64, bytes: &[u8], pulled: Pulled) -> bool {
        self.work += bytes.len() as u64;
        let Some(part) = self.part_mut(|part| part.is_by(child)) else { return false };
        part.len += bytes.len() as u64;
        match &part.order.set {
            None if bytes.is_empty() => {}
            None => {
                self.held += bytes.len();
                self.items.push_front(Item::Text(bytes.to_vec(), 0));
            }
            Some(name) if name.is_empty() && part.value_max == 0 => {}
            Some(_) if part.value.len() + bytes.len() > part.value_max => {
                self.trouble = Some("too big subrequest response".to_owned());
                return false;
            }
            Some(_) => part.value.extend_from_slice(bytes),
        }
        match pulled {
            Pulled::Some => {}
            Pulled::All => self.end(child),
            Pulled::Broken => self.is_broken = true,
        }
        true
    }

    fn end(&mut self, child: u64) {
        let is_it = |item: &Item| matches!(item, Item::Part(part) if part.is_by(child));
        let Some(at) = self.items.iter().position(is_it) else { return };
        let Some(Item::Part(part)) = self.items.remove(at) else { return };
        match (part.order.set, part.order.stub) {
            (Some(name), _) if !part.value.is_empty() => {
                if let Some(reader) = &self.reader {
                    reader.shared.borrow_mut().set(&name, part.value);
                }
            }
            (None, Some(stub)) if part.len == 0 && !stub.is_empty() => {
                self.held += stub.len();
                self.items.insert(at, Item::Text(stub.to_vec(), 0));
            }
            _ => {}
        }
    }

    /// Whether the body waits for a subrequest.
    fn waits(&self) -> bool {
        matches!(self.items.back(), Some(Item::Part(part)) if part.order.waits)
    }

    /// Whether there are bytes that were not parsed.
    fn has_input(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.has_input())
    }

    /// Parses available bytes, up to the next command.
    pub(crate) fn read(&mut self) {
        while !self.waits()
            && self.held < AHEAD
            && self.parts().count() < AT_ONCE
            && let Some(reader) = self.reader.as_mut()
            && reader.found.is_none()
            && reader.has_input()
        {
            let mut text = Vec::new();
            let (used, event) = reader.scanner.read(&reader.input[reader.at..], &mut text);
            reader.at += used;
            debug_assert!(reader.at <= reader.input.len(), "no more is read than was pulled");
            reader.found = event;
            if !reader.has_input() {
                reader.input.clear();
                reader.at = 0;
            }
            if reader.flow.shows() {
                self.push_text(&text);
            } else {
                reader.flow.hide(&text, &mut reader.shared.borrow_mut());
            }
        }
    }

    /// Takes a piece of the inner body.
    fn give_in(&mut self, bytes: &[u8]) {
        self.stub = None;
        self.work += bytes.len() as u64;
        match &mut self.reader {
            Some(reader) => {
                reader.input.extend_from_slice(bytes);
                self.read();
            }
            None => self.push_text(bytes),
        }
    }

    /// Takes the bytes that were read of a file for the inner body.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.inner.feeds_itself() {
            return self.inner.feed(bytes);
        }
        if bytes.is_empty() || matches!(self.inner, AnswerBody::Parts(_)) {
            self.is_broken = true;
            return;
        }
        self.inner.advance(bytes.len() as u64);
        self.give_in(bytes);
    }

    /// Reads ahead; returns what the inner body needs, if anything.
    fn read_on(&mut self) -> Option<BodyPiece> {
        self.read();
        let enough = self.work + FILTERED_PER_TURN;
        loop {
            if self.is_broken || self.is_stopped() || self.has_input() || self.waits() {
                return None;
            }
            if self.is_over {
                self.after.take().into_iter().for_each(|order| self.push_part(order));
                return None;
            }
            if self.held >= AHEAD || self.parts().count() >= AT_ONCE {
                return None;
            }
            // A page may produce nothing: comments, or text that a condition hides.
            if self.work >= enough {
                return Some(BodyPiece::Later);
            }
            let mut chain = SendChain::new(CopyPolicy::Contiguous);
            let piece = self.inner.pull(STEP, &mut chain);
            if let Some(bytes) = chain.contiguous().filter(|bytes| !bytes.is_empty()) {
                self.give_in(bytes);
            }
            match piece {
                BodyPiece::More => {}
                BodyPiece::Pending => return None,
                BodyPiece::End => {
                    self.is_over = true;
                    if let Some(stub) = self.stub.take() {
                        self.give_in(&stub);
                    }
                }
                BodyPiece::Broken => self.is_broken = true,
                BodyPiece::File { file, offset, len, whose } => {
                    return Some(BodyPiece::Read {
                        file,
                        offset,
                        len: len.min(STEP as u64),
                        whose,
                    });
                }
                BodyPiece::Read { .. } | BodyPiece::Fragment(_) | BodyPiece::Later => {
                    return Some(piece);
                }
            }
        }
    }

    pub(super) fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        if let Some(piece) = self.read_on() {
            return piece;
        }
        if self.is_broken {
            return BodyPiece::Broken;
        }
        let is_stopped = self.is_stopped();
        let is_done = self.is_over && !is_stopped && !self.has_input() && self.after.is_none();
        match self.items.front_mut() {
            Some(Item::Text(text, given)) => {
                let end = text.len().min(*given + max);
                out.push_slice(&text[*given..end]);
                let is_all = end == text.len();
                debug_assert!(self.held >= end - *given, "what leaves was counted when it came");
                self.held = self.held.saturating_sub(end - *given);
                *given = end;
                if is_all {
                    self.items.pop_front();
                }
                if is_done && self.items.is_empty() { BodyPiece::End } else { BodyPiece::More }
            }
            Some(Item::Part(part)) => match part.state {
                // Subrequests see the commands before them.
                PartState::HasHead(child) if !is_stopped => BodyPiece::Fragment(child),
                _ => BodyPiece::Pending,
            },
            None if is_done => BodyPiece::End,
            None => BodyPiece::Pending,
        }
    }
}

impl Part {
    fn is_by(&self, child: u64) -> bool {
        matches!(self.state, PartState::Started(by) | PartState::HasHead(by) if by == child)
    }
}
