//! Subrequests: exchanges that another exchange has started (`bolide_engine::Subrequest`).
//!
//! Owns the tree of parents and children, and what a parent gets of its children. No exchange is
//! stepped while bodies are pulled: [`crate::subrequest_tree::SubrequestTree`] holds deferred work.
//! Easiest to break: a parent that ends takes its children with it, and theirs.

use bolide_base::{Bound, CopyPolicy, SendChain, SlabKey};
use bolide_engine::{BodyPiece, Pulled, Wake};
use bolide_io::Io;
use bolide_wire::{BodySource, Pull};

use crate::bodies::Bodies;
use crate::exchange_table::ActiveExchange;
use crate::framing::StreamAct;
use crate::requests::Requests;
use crate::subrequest_tree::SubrequestEnd;

impl<I: Io> Bodies<'_, I> {
    /// Pulls from a page with subrequests.
    pub(crate) fn pull_page(
        &mut self,
        page: SlabKey<ActiveExchange>,
        max: usize,
        out: &mut SendChain,
    ) -> Pull {
        let mut bound = Bound::new();
        let pull = loop {
            match self.pull_through(page, max, out) {
                BodyPiece::Fragment(child) if bound.goes_on() => {
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

    /// Gives the page the available bytes of its current subrequest; false if there are none.
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
        let is_wanted = live.exchange.as_parent().take(child, bytes, pulled);
        let child = SlabKey::from_bits(child);
        match pulled {
            Pulled::Some if is_wanted => {}
            Pulled::All => {
                let sent = self
                    .exchanges
                    .get(child)
                    .map_or(0, |live| live.exchange.as_child().body_sent());
                self.family.over.push((child, SubrequestEnd::Sent(sent)));
            }
            Pulled::Some | Pulled::Broken => {
                self.family.over.push((child, SubrequestEnd::Unwanted));
            }
        }
        true
    }
}

impl<I: Io> Requests<I> {
    /// Starts the subrequests that a page requests; returns a wake for immediate results.
    pub(crate) fn start_fragments(&mut self, page: SlabKey<ActiveExchange>) -> Option<Wake> {
        let before = self.exchanges.family.starting.replace(page);
        while let Some(child) = self.next_fragment(page) {
            self.step(child, Wake::Start);
        }
        self.exchanges.family.starting = before;
        // A refused subrequest may have been all that the page waited for.
        if self.exchanges.live.get(page)?.exchange.is_assembling() {
            return Some(Wake::Fragment);
        }
        self.with_stream(page, StreamAct::Ready);
        None
    }

    fn next_fragment(&mut self, page: SlabKey<ActiveExchange>) -> Option<SlabKey<ActiveExchange>> {
        let mut head = self.env.heads.take();
        let found = self.lend(page).and_then(|(live, mut ctx)| {
            let child = live.exchange.as_parent().next(&mut head, &mut ctx)?;
            Some((child, live.exchange.site()?.clone()))
        });
        let Some((child, site)) = found else {
            self.env.heads.put(head);
            return None;
        };
        let mut exchange = self.exchanges.take_spare();
        let is_part = matches!(child, bolide_engine::Subrequest::Part(_));
        exchange.start_child(head, site, child);
        let child =
            self.exchanges.live.insert(ActiveExchange::part_of(page, exchange, self.env.now.mono));
        let parent = self.exchanges.live.get_mut(page)?;
        match child {
            Ok(child) => {
                parent.exchange.as_parent().bind(child.to_bits(), is_part);
                debug_assert!(!parent.children.contains(&child), "a part has one page");
                parent.children.push(child);
                Some(child)
            }
            Err(_) => {
                parent.exchange.as_parent().refuse(is_part);
                None
            }
        }
    }

    /// Starts the authorization subrequest of an exchange; returns the wake if it has failed.
    pub(crate) fn start_auth_subrequest(&mut self, asker: SlabKey<ActiveExchange>) -> Option<Wake> {
        let mut head = self.env.heads.take();
        let found = self.exchanges.live.get_mut(asker).and_then(|live| {
            let auth = live.exchange.as_parent().next_auth(&mut head)?;
            Some((auth, live.exchange.site()?.clone()))
        });
        let Some((auth, site)) = found else {
            self.env.heads.put(head);
            return Some(Wake::Fragment);
        };
        let mut exchange = self.exchanges.take_spare();
        exchange.start_child(head, site, auth);
        let Ok(child) =
            self.exchanges.live.insert(ActiveExchange::part_of(asker, exchange, self.env.now.mono))
        else {
            return Some(Wake::Fragment);
        };
        self.exchanges.live.get_mut(asker)?.children.push(child);
        self.step(child, Wake::Start);
        None
    }

    /// The response head of an authorization subrequest is there; its body is dropped.
    pub(crate) fn answer_auth_subrequest(
        &mut self,
        child: SlabKey<ActiveExchange>,
        asker: SlabKey<ActiveExchange>,
    ) -> Option<Wake> {
        let (live, ctx) = self.lend(child)?;
        let verdict = live.exchange.as_child().verdict(&ctx)?;
        self.exchanges.live.get_mut(asker)?.exchange.as_parent().take_verdict(verdict);
        Some(Wake::SendTimeout)
    }

    /// The response head of a subrequest is there.
    pub(crate) fn respond_fragment(
        &mut self,
        child: SlabKey<ActiveExchange>,
        page: SlabKey<ActiveExchange>,
    ) -> Option<Wake> {
        debug_assert!(child != page, "an exchange is no subrequest of itself");
        if self.exchanges.live.get(child)?.exchange.as_child().is_auth() {
            return self.answer_auth_subrequest(child, page);
        }
        if self.exchanges.live.get(child)?.exchange.as_child().is_part() {
            let (live, mut ctx) = self.lend(child)?;
            let head = live.exchange.as_child().head_for_page(&mut ctx)?;
            self.exchanges
                .live
                .get_mut(page)?
                .exchange
                .as_parent()
                .accept_part(child.to_bits(), &head);
            self.wake_page(page);
            return None;
        }
        let (live, mut ctx) = self.lend(child)?;
        if let Some(is_it) = live.exchange.as_child().is_next_slice(&mut ctx) {
            let mut parent = self.exchanges.live.get_mut(page)?.exchange.as_parent();
            match is_it {
                true => parent.accept_slice(child.to_bits()),
                false => parent.lose(child.to_bits()),
            }
            self.wake_page(page);
            return (!is_it).then_some(Wake::SendTimeout);
        }
        let waits = self.exchanges.live.get(page)?.exchange.is_assembling();
        let fragment = self.exchanges.live.get(child)?.exchange.as_child();
        let is_good = fragment.is_good_fragment();
        let cookies = if waits { fragment.cookies_set() } else { Vec::new() };
        let whole = fragment.whole_object().filter(|_| is_good);
        let open = whole.as_ref().and_then(|_| fragment.open_shortcut());
        let combined = fragment.combined_head();
        let parent = self.exchanges.live.get_mut(page)?;
        if let Some(head) = combined {
            parent.exchange.as_parent().receive_combined(child.to_bits(), head);
        }
        if let Some(object) = whole {
            let body_bytes = object.body_len();
            let shortcut = open
                .and_then(|open| parent.exchange.as_parent().shortcut_to(child.to_bits(), open));
            if let (Some(shortcut), Some(front)) = (shortcut, &mut self.env.kept.front) {
                shortcut.keep(object.clone(), front, self.env.now.unix_millis);
            }
            parent.exchange.as_parent().accept_object(child.to_bits(), object, cookies);
            self.wake_page(page);
            return Some(Wake::Sent { body_bytes, head_bytes: 0 });
        }
        if is_good {
            parent.exchange.as_parent().accept_fragment(child.to_bits(), cookies);
        } else {
            parent.exchange.as_parent().lose_fragment(child.to_bits());
            self.exchanges.family.note(&self.exchanges.live, page);
        }
        self.wake_page(page);
        (!is_good).then_some(Wake::SendTimeout)
    }

    /// A subrequest was removed from the slab.
    pub(crate) fn leave_page(
        &mut self,
        child: SlabKey<ActiveExchange>,
        page: SlabKey<ActiveExchange>,
    ) {
        let Some(parent) = self.exchanges.live.get_mut(page) else { return };
        parent.children.retain(|other| *other != child);
        parent.exchange.as_parent().lose(child.to_bits());
        self.exchanges.family.note(&self.exchanges.live, page);
        self.wake_page(page);
    }

    /// Wakes a page after an event of a subrequest.
    fn wake_page(&mut self, page: SlabKey<ActiveExchange>) {
        if self.exchanges.family.starting == Some(page) {
            return;
        }
        let Some(live) = self.exchanges.live.get(page) else { return };
        if live.exchange.is_assembling() {
            self.env.news.wake(page, Wake::Fragment);
        } else if self.exchanges.root(page).map(|(root, _)| root) != self.exchanges.family.starting
        {
            self.with_stream(page, StreamAct::Ready);
        }
    }

    /// Ends the children of a page that is gone.
    pub(crate) fn end_parts_of(&mut self, page: SlabKey<ActiveExchange>) {
        if self.exchanges.family.over.is_empty() {
            return;
        }
        let before = self.exchanges.family.starting.replace(page);
        self.end_children();
        self.exchanges.family.starting = before;
    }

    /// Ends finished subrequests, in order.
    fn end_children(&mut self) {
        let mut bound = Bound::new();
        while !self.exchanges.family.over.is_empty() && bound.goes_on() {
            for (child, end) in std::mem::take(&mut self.exchanges.family.over) {
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

    /// Does the work that was deferred while bodies were pulled.
    pub(crate) fn settle_family(&mut self) {
        self.end_children();
        for page in std::mem::take(&mut self.exchanges.family.eager) {
            if let Some(wake) = self.start_fragments(page) {
                self.step(page, wake);
            }
        }
    }
}
