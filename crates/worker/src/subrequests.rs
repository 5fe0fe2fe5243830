//! Subrequests: exchanges that another exchange asked for (`bolide_engine::Subrequest`).
//!
//! Owns the tree of parents and children, and what a parent learns of its children. No exchange is
//! stepped while bodies are pulled: [`SubrequestTree`] holds what is to be done until the pull is
//! over. Easiest to break: a parent that goes takes its children with it, and theirs.

use bolide_base::{CopyPolicy, SendChain, Slab, SlabKey};
use bolide_engine::{Exchange, Pulled, Wake};
use bolide_io::Io;
use bolide_wire::{BodySource, Pull, StreamId};

use crate::bodies::{Bodies, pull_through};
use crate::effects::StreamAct;
use crate::exchanges::{ActiveExchange, Owner};
use crate::worker::Worker;

/// How a fragment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubrequestEnd {
    /// All of it went into the page: so many bytes.
    Sent(u64),
    /// The rest is not used.
    Unwanted,
}

/// What is to be done for pages and fragments between pulls.
#[derive(Debug, Default)]
pub(crate) struct SubrequestTree {
    /// Fragments that are over.
    over: Vec<(SlabKey<ActiveExchange>, SubrequestEnd)>,
    /// Pages that want more fragments asked for.
    eager: Vec<SlabKey<ActiveExchange>>,
    /// The page whose fragments are being asked for, which learns at the end what became of them;
    /// or one that has left.
    starting: Option<SlabKey<ActiveExchange>>,
}

impl SubrequestTree {
    /// Whether there is nothing to do.
    pub(crate) const fn is_idle(&self) -> bool {
        self.over.is_empty() && self.eager.is_empty()
    }

    fn note(&mut self, exchanges: &Slab<ActiveExchange>, page: SlabKey<ActiveExchange>) {
        if exchanges.get(page).is_some_and(|live| live.exchange.wants_fragments())
            && !self.eager.contains(&page)
        {
            self.eager.push(page);
        }
    }
}

impl<I: Io> Bodies<'_, I> {
    /// Pulls from a page that is put together.
    pub(crate) fn pull_page(
        &mut self,
        page: SlabKey<ActiveExchange>,
        max: usize,
        out: &mut SendChain,
    ) -> Pull {
        let pull = loop {
            let Some(live) = self.exchanges.get_mut(page) else { return Pull::Broken };
            match pull_through(self.io, &mut live.exchange, max, out) {
                bolide_engine::BodyPiece::Fragment(child) => {
                    if !self.pull_fragment(page, child, max) {
                        break Pull::Pending;
                    }
                }
                piece => break self.give(page, piece, max, out),
            }
        };
        self.family.note(self.exchanges, page);
        pull
    }

    /// Gives the page what there is of its fragment; false if that is nothing.
    fn pull_fragment(&mut self, page: SlabKey<ActiveExchange>, child: u64, max: usize) -> bool {
        let mut chain = SendChain::new(CopyPolicy::Contiguous);
        let pull = self.pull(child, max, &mut chain);
        let bytes = chain.contiguous().unwrap_or_default();
        let pulled = match pull {
            Pull::Pending if bytes.is_empty() => return false,
            Pull::Pending | Pull::More => Pulled::Some,
            Pull::End => Pulled::All,
            Pull::Broken => Pulled::Broken,
        };
        let Some(live) = self.exchanges.get_mut(page) else { return false };
        let is_wanted = live.exchange.take_child(child, bytes, pulled);
        let child = SlabKey::from_bits(child);
        match pulled {
            Pulled::Some if is_wanted => {}
            Pulled::All => {
                let sent = self.exchanges.get(child).map_or(0, |live| live.exchange.body_sent());
                self.family.over.push((child, SubrequestEnd::Sent(sent)));
            }
            Pulled::Some | Pulled::Broken => {
                self.family.over.push((child, SubrequestEnd::Unwanted));
            }
        }
        true
    }
}

impl<I: Io> Worker<I> {
    /// Asks for the fragments that a page wants now; the wake that it leads to at once, if any.
    pub(crate) fn start_fragments(&mut self, page: SlabKey<ActiveExchange>) -> Option<Wake> {
        let before = self.origins.family.starting.replace(page);
        while let Some(child) = self.next_fragment(page) {
            self.step(child, Wake::Start);
        }
        self.origins.family.starting = before;
        // What is not asked for may have been all that the page waited for.
        if self.core.exchanges.get(page)?.exchange.is_assembling() {
            return Some(Wake::Fragment);
        }
        self.with_stream(page, StreamAct::Ready);
        None
    }

    fn next_fragment(&mut self, page: SlabKey<ActiveExchange>) -> Option<SlabKey<ActiveExchange>> {
        let mut head = self.core.heads.take();
        let found = self.lend(page).and_then(|(live, mut ctx)| {
            let child = live.exchange.next_child(&mut head, &mut ctx)?;
            Some((child, live.exchange.site()?.clone()))
        });
        let Some((child, site)) = found else {
            self.core.heads.put(head);
            return None;
        };
        let mut exchange = self.core.spare.pop().unwrap_or_else(|| Box::new(Exchange::new()));
        let is_part = matches!(child, bolide_engine::Subrequest::Part(_));
        exchange.start_child(head, site, child);
        let child = self.core.exchanges.insert(self.part_of(page, exchange));
        let parent = self.core.exchanges.get_mut(page)?;
        match child {
            Ok(child) => {
                parent.exchange.bind_child(child.to_bits(), is_part);
                parent.children.push(child);
                Some(child)
            }
            Err(_) => {
                parent.exchange.refuse_child(is_part);
                None
            }
        }
    }

    /// An exchange whose answer goes to another one.
    pub(crate) const fn part_of(
        &self,
        page: SlabKey<ActiveExchange>,
        exchange: Box<Exchange>,
    ) -> ActiveExchange {
        ActiveExchange::new(exchange, Owner::Parent(page), StreamId(0), self.now.mono)
    }

    /// Starts the authorization subrequest of an exchange; the wake that follows at once, if any.
    pub(crate) fn start_auth_subrequest(&mut self, asker: SlabKey<ActiveExchange>) -> Option<Wake> {
        let mut head = self.core.heads.take();
        let found = self.core.exchanges.get_mut(asker).and_then(|live| {
            let auth = live.exchange.next_auth(&mut head)?;
            Some((auth, live.exchange.site()?.clone()))
        });
        let Some((auth, site)) = found else {
            self.core.heads.put(head);
            return Some(Wake::Fragment);
        };
        let mut exchange = self.core.spare.pop().unwrap_or_else(|| Box::new(Exchange::new()));
        exchange.start_child(head, site, auth);
        let Ok(child) = self.core.exchanges.insert(self.part_of(asker, exchange)) else {
            return Some(Wake::Fragment);
        };
        self.core.exchanges.get_mut(asker)?.children.push(child);
        self.step(child, Wake::Start);
        None
    }

    /// The head of an authorization subrequest's answer is there; its body is dropped.
    pub(crate) fn answer_auth_subrequest(
        &mut self,
        child: SlabKey<ActiveExchange>,
        asker: SlabKey<ActiveExchange>,
    ) -> Option<Wake> {
        let (live, ctx) = self.lend(child)?;
        let verdict = live.exchange.verdict(&ctx)?;
        self.core.exchanges.get_mut(asker)?.exchange.take_verdict(verdict);
        Some(Wake::SendTimeout)
    }

    /// The head of a fragment is there.
    pub(crate) fn respond_fragment(
        &mut self,
        child: SlabKey<ActiveExchange>,
        page: SlabKey<ActiveExchange>,
    ) -> Option<Wake> {
        if self.core.exchanges.get(child)?.exchange.is_auth_subrequest() {
            return self.answer_auth_subrequest(child, page);
        }
        if self.core.exchanges.get(child)?.exchange.is_part() {
            let (live, mut ctx) = self.lend(child)?;
            let told = live.exchange.tell_page(&mut ctx)?;
            self.core.exchanges.get_mut(page)?.exchange.accept_part(child.to_bits(), &told);
            self.tell_page(page);
            return None;
        }
        let waits = self.core.exchanges.get(page)?.exchange.is_assembling();
        let exchange = &self.core.exchanges.get(child)?.exchange;
        let is_good = exchange.is_good_fragment();
        let cookies = if waits { exchange.cookies_set() } else { Vec::new() };
        let whole = exchange.whole_object().filter(|_| is_good);
        let open = whole.as_ref().and_then(|_| exchange.is_open_fragment());
        let parent = self.core.exchanges.get_mut(page)?;
        if let Some(object) = whole {
            let body_bytes = object.body_len();
            let shortcut = open.and_then(|open| parent.exchange.shortcut_to(child.to_bits(), open));
            if let (Some(shortcut), Some(front)) = (shortcut, &mut self.core.cache) {
                shortcut.keep(object.clone(), front, self.now.unix_millis);
            }
            parent.exchange.accept_object(child.to_bits(), object, cookies);
            self.tell_page(page);
            return Some(Wake::Sent { body_bytes, head_bytes: 0 });
        }
        if is_good {
            parent.exchange.accept_fragment(child.to_bits(), cookies);
        } else {
            parent.exchange.lose_fragment(child.to_bits());
            self.origins.family.note(&self.core.exchanges, page);
        }
        self.tell_page(page);
        (!is_good).then_some(Wake::SendTimeout)
    }

    /// A fragment has left the slab.
    pub(crate) fn leave_page(
        &mut self,
        child: SlabKey<ActiveExchange>,
        page: SlabKey<ActiveExchange>,
    ) {
        let Some(parent) = self.core.exchanges.get_mut(page) else { return };
        parent.children.retain(|other| *other != child);
        parent.exchange.lose_child(child.to_bits());
        self.origins.family.note(&self.core.exchanges, page);
        self.tell_page(page);
    }

    /// Something has become of a fragment.
    fn tell_page(&mut self, page: SlabKey<ActiveExchange>) {
        if self.origins.family.starting == Some(page) {
            return;
        }
        let Some(live) = self.core.exchanges.get(page) else { return };
        if live.exchange.is_assembling() {
            self.origins.news.push_back((page, Wake::Fragment));
        } else if self.root(page).map(|(root, _)| root) != self.origins.family.starting {
            self.with_stream(page, StreamAct::Ready);
        }
    }

    /// Ends what is over before the page that it was a part of, which has left.
    pub(crate) fn end_parts_of(&mut self, page: SlabKey<ActiveExchange>) {
        if self.origins.family.over.is_empty() {
            return;
        }
        let before = self.origins.family.starting.replace(page);
        self.end_children();
        self.origins.family.starting = before;
    }

    /// Ends fragments and parts that are over, in order.
    fn end_children(&mut self) {
        let mut bound = bolide_base::Bound::new();
        while !self.origins.family.over.is_empty() && bound.goes_on() {
            for (child, end) in std::mem::take(&mut self.origins.family.over) {
                match end {
                    SubrequestEnd::Sent(body_bytes) => {
                        self.step(child, Wake::Sent { body_bytes, head_bytes: 0 });
                    }
                    SubrequestEnd::Unwanted => {
                        self.step(child, Wake::SendTimeout);
                        self.retire(child);
                    }
                }
            }
        }
    }

    /// Does what could not be done while bodies were pulled.
    pub(crate) fn settle_family(&mut self) {
        self.end_children();
        for page in std::mem::take(&mut self.origins.family.eager) {
            if let Some(wake) = self.start_fragments(page) {
                self.step(page, wake);
            }
        }
    }

    /// Whose connection an answer leaves by in the end.
    pub(crate) fn root_owner(&self, mut owner: Owner) -> Option<Owner> {
        while let Owner::Parent(page) = owner {
            owner = self.core.exchanges.get(page)?.owner;
        }
        Some(owner)
    }

    /// The page that has no page, and whether the client gets bytes of `key` now.
    pub(crate) fn root(
        &self,
        mut key: SlabKey<ActiveExchange>,
    ) -> Option<(SlabKey<ActiveExchange>, bool)> {
        let mut is_pulled = true;
        while let Owner::Parent(page) = self.core.exchanges.get(key)?.owner {
            let parent = self.core.exchanges.get(page)?;
            is_pulled &= parent.exchange.is_at_fragment(key.to_bits());
            key = page;
        }
        Some((key, is_pulled))
    }
}
