//! A body with other answers in it: pages with SSI, and what `addition` puts around bodies.
//!
//! Owns the order in which texts and answers leave, and how far a page is read ahead of them.
//! The owner of the request does commands ([`crate::content::parts`]): reading stops at each.
//! Easiest to break: as in nginx, a page is read on before the answers that it asked for are, so
//! that they see what it set.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_base::limits::FILTERED_PER_TURN;
use bolide_ssi::{Flow, SharedText, SsiEvent, SsiScanner};

use super::{AnswerBody, BodyPiece, Pulled};

/// LIMIT: answers that one body has asked for and not seen the end of.
const AT_ONCE: usize = 8;
/// LIMIT: bytes of text that are read ahead of an answer.
const AHEAD: usize = 64 * 1024;
/// Bytes of the inner body that one step takes.
const STEP: usize = 16 * 1024;

/// An answer that is to be asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartOrder {
    /// The path, decoded.
    pub(crate) uri: Vec<u8>,
    /// The query.
    pub(crate) args: Option<Vec<u8>>,
    /// Whether nothing more of the page is read before it is over.
    pub(crate) waits: bool,
    /// The variable that it goes to.
    pub(crate) set: Option<Vec<u8>>,
    /// What is shown if there is nothing of it.
    pub(crate) stub: Option<Arc<Vec<u8>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    New,
    /// The exchange of this name was made for it.
    Asked(u64),
    /// Its head is there.
    Answering(u64),
}

/// An answer at its place.
#[derive(Debug)]
struct Part {
    order: PartOrder,
    standing: Standing,
    /// Bytes of it that came.
    len: u64,
    value: Vec<u8>,
    value_max: usize,
}

/// What leaves, in order.
#[derive(Debug)]
enum Item {
    /// Bytes, so many of which have left.
    Text(Vec<u8>, usize),
    Part(Box<Part>),
}

/// What reads the commands of a page.
#[derive(Debug)]
pub(crate) struct CompoundReader {
    scanner: SsiScanner,
    pub(crate) flow: Flow,
    pub(crate) shared: Rc<RefCell<SharedText>>,
    /// What was pulled of the page, and how much of that was read.
    input: Vec<u8>,
    at: usize,
    /// Where reading stopped.
    found: Option<SsiEvent>,
}

/// A body with other answers in it.
#[derive(Debug)]
pub(crate) struct Compound {
    pub(crate) inner: AnswerBody,
    reader: Option<Box<CompoundReader>>,
    items: VecDeque<Item>,
    /// Bytes of text among them.
    held: usize,
    /// What is read instead of a page of which nothing comes.
    stub: Option<Arc<Vec<u8>>>,
    /// What follows the page.
    after: Option<PartOrder>,
    /// Whether the inner body is over.
    is_over: bool,
    is_broken: bool,
    /// Why it will break.
    trouble: Option<String>,
    /// Bytes that were taken since that was asked last.
    pub(super) work: u64,
}

/// What `ssi` and `addition` put into a body.
#[derive(Debug)]
pub(crate) struct PartsFilter {
    reader: Option<CompoundReader>,
    stub: Option<Arc<Vec<u8>>>,
    before: Option<PartOrder>,
    after: Option<PartOrder>,
    keeps_last_modified: bool,
}

impl PartsFilter {
    /// Nothing yet.
    pub(crate) const fn new(keeps_last_modified: bool) -> Self {
        Self { reader: None, stub: None, before: None, after: None, keeps_last_modified }
    }

    /// Has the commands done that `reader` finds; `stub` is read if nothing comes of the page.
    pub(crate) fn read(&mut self, reader: CompoundReader, stub: Option<Arc<Vec<u8>>>) {
        (self.reader, self.stub) = (Some(reader), stub);
    }

    /// Puts bodies before and after this one.
    pub(crate) fn surround(&mut self, before: Option<PartOrder>, after: Option<PartOrder>) {
        (self.before, self.after) = (before, after);
    }

    pub(super) const fn keeps_last_modified(&self) -> bool {
        self.keeps_last_modified
    }
}

impl CompoundReader {
    /// For a page, or for an answer that belongs to one, with what they share.
    pub(crate) fn new(value_max: usize, shared: Rc<RefCell<SharedText>>) -> Self {
        let (scanner, flow) = (SsiScanner::new(value_max), Flow::default());
        Self { scanner, flow, shared, input: Vec::new(), at: 0, found: None }
    }

    fn has_input(&self) -> bool {
        self.at < self.input.len()
    }
}

impl Compound {
    /// `inner` with these parts in it.
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

    /// What `config timefmt` said last, if anything may have.
    pub(crate) fn time_format(&self) -> Option<&[u8]> {
        self.reader.as_ref().map(|reader| reader.flow.time_format())
    }

    /// What reads the page; to be put back by who takes it.
    pub(crate) const fn reader_mut(&mut self) -> &mut Option<Box<CompoundReader>> {
        &mut self.reader
    }

    /// What reading stopped at.
    pub(crate) fn take_event(&mut self) -> Option<SsiEvent> {
        self.reader.as_mut()?.found.take()
    }

    /// Why it breaks, if it has to be said.
    pub(crate) fn take_trouble(&mut self) -> Option<String> {
        let trouble = self.trouble.take();
        self.is_broken |= trouble.is_some();
        trouble
    }

    /// Adds text behind all that is there.
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

    /// Adds an answer that is to be asked for.
    pub(crate) fn push_part(&mut self, order: PartOrder) {
        let part = Part { order, standing: Standing::New, len: 0, value: Vec::new(), value_max: 0 };
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

    /// Whether commands are to be done, or answers to be asked for.
    pub(crate) fn wants(&self) -> bool {
        !self.is_broken
            && (self.trouble.is_some() || self.is_stopped() || self.next_order().is_some())
    }

    /// Whether reading stopped at a command.
    fn is_stopped(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.found.is_some())
    }

    /// The answer that is to be asked for next.
    pub(crate) fn next_order(&self) -> Option<&PartOrder> {
        let ahead = self.parts().take(AT_ONCE);
        let next = ahead.into_iter().find(|part| part.standing == Standing::New);
        next.filter(|_| !self.is_broken).map(|part| &part.order)
    }

    /// Names the exchange that asks for it.
    pub(crate) fn bind(&mut self, child: u64) {
        debug_assert!(!self.owns(child), "an exchange is asked for one answer");
        if let Some(part) = self.part_mut(|part| part.standing == Standing::New) {
            part.standing = Standing::Asked(child);
        }
    }

    /// Whether it ends where it is.
    pub(crate) const fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// It cannot be asked for.
    pub(crate) const fn refuse(&mut self) {
        self.is_broken = true;
    }

    /// Whether the exchange `child` was made for it.
    pub(crate) fn owns(&self, child: u64) -> bool {
        self.parts().any(|part| part.is_by(child))
    }

    /// Whether what `child` gives is what is sent now.
    pub(crate) fn is_at(&self, child: u64) -> bool {
        matches!(self.items.front(), Some(Item::Part(part)) if part.is_by(child))
    }

    /// The head of an answer is there. Where it goes to a variable, it may have `value_max` bytes,
    /// or nothing of it counts. If it `has_stub`, it gives itself what is shown where there is
    /// nothing of it.
    pub(crate) fn accept(&mut self, child: u64, value_max: Option<usize>, has_stub: bool) {
        let Some(part) = self.part_mut(|part| part.is_by(child)) else { return };
        part.standing = Standing::Answering(child);
        part.value_max = value_max.unwrap_or(0);
        part.order.stub.take_if(|_| has_stub);
        if part.order.set.is_some() && value_max.is_none() {
            part.order.set = Some(Vec::new());
        }
    }

    /// An answer will not come, or not to its end.
    pub(crate) fn lose(&mut self, child: u64) {
        self.is_broken |= self.owns(child);
    }

    /// Takes what was pulled of the answer that [`BodyPiece::Fragment`] named; false if no more of
    /// it is wanted.
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

    /// Whether the client waits for another answer.
    fn waits(&self) -> bool {
        matches!(self.items.back(), Some(Item::Part(part)) if part.order.waits)
    }

    /// Whether something was pulled and not read.
    fn has_input(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.has_input())
    }

    /// Reads what was pulled already, up to the next command.
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

    /// Takes what was read of a file for the inner body.
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

    /// Reads ahead; what has to be done for that, if anything.
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
            // Nothing need come of a page: of comments, or of what a condition hides.
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
            Some(Item::Part(part)) => match part.standing {
                // What the page does first, its answers see.
                Standing::Answering(child) if !is_stopped => BodyPiece::Fragment(child),
                _ => BodyPiece::Pending,
            },
            None if is_done => BodyPiece::End,
            None => BodyPiece::Pending,
        }
    }
}

impl Part {
    fn is_by(&self, child: u64) -> bool {
        matches!(self.standing, Standing::Asked(by) | Standing::Answering(by) if by == child)
    }
}
