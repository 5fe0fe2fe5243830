//! The body of an ESI page, assembled while it is sent: literals and fragments in order.
//!
//! ```text
//!            an include is parsed          its turn           End
//!   (text) ───────────────────▶ New ─▶ Asked ─▶ Answering ─────────▶ (text)
//!                                │       └─ failed: New with `alt`, else Nothing
//!                                ├─ refused: Nothing
//!                                └─ not cached, and combined with others: Missing ─▶ New
//! ```
//!
//! Owns which fragments are requested when, and their order; the worker starts and pulls them.
//! Easiest to break: a fragment that fails before its first byte is left out; one that fails later
//! breaks the page.

mod pulling;

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use bolide_cache::{FillMoment, Object};
use bolide_esi::splice::Joint;
use bolide_esi::{Combine, EsiInclude, OnError};
use bolide_http::negotiate::Coding;
use bytes::Bytes;

use super::Inflow;
use super::combined::Combination;
use super::fragment::{Fragment, FragmentStanding};
use super::script::ScriptState;
use crate::answer::growth::Growth;
use crate::subrequest::{CombinedHead, FragmentSource};

/// LIMIT: fragments of one page that are requested at a time.
pub(crate) const AT_ONCE: usize = 8;
/// LIMIT: bytes of an arriving page that its head waits for.
const HEAD_WAIT_MAX: u64 = 256 * 1024;
/// LIMIT: bytes of a cached fragment whose compressed form is cached for pages.
pub(super) const PARTS_MAX: u64 = 1024 * 1024;
/// LIMIT: cookies of the fragments of one page.
const COOKIES_MAX: usize = 64;
/// LIMIT: bytes of a fragment that is used at several places (`as-var`); a larger one is left out.
const VAR_MAX: usize = 256 * 1024;
/// The result of a pull from a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulled {
    /// There may be more.
    Some,
    /// The body is complete.
    All,
    /// The body broke off.
    Broken,
}

/// A fragment to be requested.
#[derive(Debug)]
pub(crate) struct WantedFragment<'a> {
    pub(crate) include: &'a EsiInclude,
    /// Its `src` or `alt`, whichever is tried next.
    pub(crate) src: &'a Bytes,
    pub(crate) source: FragmentSource,
    /// The URL that returns it together with others, if the page names one.
    pub(crate) combined_by: Option<&'a Bytes>,
}

/// An ESI page in assembly.
#[derive(Debug)]
pub(crate) struct PageAssembly {
    script: ScriptState,
    fragments: VecDeque<Fragment>,
    combination: Option<Box<Combination>>,
    /// The URL of the first include that combines others (`combine='main'`).
    combined_by: Option<Bytes>,
    /// Whether the first fragment is being sent.
    in_fragment: bool,
    /// Includes that were parsed.
    count: u32,
    /// Fragments for several includes: number of the first include, bytes.
    vars: Vec<(u32, Bytes)>,
    var: Vec<u8>,
    /// The bytes that are sent next.
    ready: Bytes,
    joint: Option<(Joint, i8)>,
    /// Cookies of fragments whose heads came before the page's head was sent.
    cookies: Vec<Vec<u8>>,
    is_headed: bool,
    is_over: bool,
    is_broken: bool,
    is_waiting: bool,
}

impl PageAssembly {
    fn new(script: ScriptState) -> Self {
        Self {
            script,
            fragments: VecDeque::new(),
            combination: None,
            combined_by: None,
            in_fragment: false,
            count: 0,
            vars: Vec::new(),
            var: Vec::new(),
            ready: Bytes::new(),
            joint: None,
            cookies: Vec::new(),
            is_headed: false,
            is_over: false,
            is_broken: false,
            is_waiting: false,
        }
    }

    /// A cached page.
    pub(crate) fn kept(object: Arc<Object>) -> Self {
        let mut assembly = Self::new(ScriptState::kept(object));
        assembly.look_ahead();
        assembly.combination = Combination::of(&mut assembly.fragments);
        assembly
    }

    /// A page that another exchange fetches.
    pub(crate) fn growing(growth: Growth) -> Self {
        Self::new(ScriptState::growing(growth))
    }

    /// A page from an upstream for this request alone; `len` is its `Content-Length`.
    pub(crate) fn inflow(inflow: Inflow, len: Option<u64>) -> Self {
        Self::new(ScriptState::inflow(inflow, len))
    }

    /// Sends the page in `coding`. Call it before the first read.
    pub(crate) fn encode(&mut self, coding: Coding, level: i8) {
        debug_assert!(
            !self.is_headed && self.ready.is_empty(),
            "nothing was read before the coding"
        );
        self.joint = Some((Joint::new(coding), level));
        self.script.encode(coding, level);
    }

    /// The arriving upstream response, if the page comes from one.
    pub(crate) const fn inflow_mut(&mut self) -> Option<&mut Inflow> {
        self.script.inflow_mut()
    }

    /// As [`Self::inflow_mut`], shared.
    pub(crate) const fn origin(&self) -> Option<&Inflow> {
        self.script.origin()
    }

    /// Appends bytes of the page from the upstream.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        self.script.push(bytes);
        self.look_ahead();
    }

    /// The page from the upstream is complete.
    pub(crate) fn finish(&mut self) {
        self.script.finish();
        self.look_ahead();
    }

    /// The rest of the page will not arrive.
    pub(crate) fn fail(&mut self) {
        self.script.fail();
    }

    /// Whether the client waits for the upstream of the page or of a fragment.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Reads the available part of a page that is being fetched.
    pub(crate) fn read_on(&mut self) {
        self.script.refill();
        self.look_ahead();
    }

    /// Registers the includes that are parsed.
    fn look_ahead(&mut self) {
        let max = if self.script.is_kept() { usize::MAX } else { AT_ONCE };
        while self.fragments.len() < max
            && let Some(include) = self.script.next_include()
        {
            let number = self.count;
            self.count += 1;
            if include.combine == Combine::Main {
                self.combined_by.get_or_insert_with(|| include.src.clone());
            }
            let standing = match (include.same_as, include.combine) {
                (Some(first), _) => FragmentStanding::Same(first),
                // It has no content of its own.
                (None, Combine::Main) => FragmentStanding::Nothing,
                (None, _) => FragmentStanding::New,
            };
            self.fragments.push_back(Fragment {
                include,
                number,
                standing,
                has_begun: false,
                is_second: false,
                object: None,
                at: 0,
            });
        }
    }

    /// Whether fragments have to be requested.
    pub(crate) fn wants_fragments(&self) -> bool {
        !self.is_broken && self.wanted().is_some()
    }

    fn wanted(&self) -> Option<usize> {
        let is_wanted = |fragment: &Fragment| {
            matches!(fragment.standing, FragmentStanding::New | FragmentStanding::Alternative)
        };
        let at = self.fragments.iter().position(is_wanted)?;
        let is_busy = |fragment: &&Fragment| {
            matches!(fragment.standing, FragmentStanding::Asked(_) | FragmentStanding::Answering(_))
        };
        // The fragment that is sent next does not wait for later ones.
        (at == 0 || self.fragments.iter().filter(is_busy).count() < AT_ONCE).then_some(at)
    }

    /// The next include to request.
    pub(crate) fn next_wanted(&self) -> Option<WantedFragment<'_>> {
        let fragment = self.fragments.get(self.wanted()?)?;
        let include = &fragment.include;
        let (src, source) = match (fragment.standing, &include.alt) {
            (FragmentStanding::Alternative, Some(alt)) => (alt, FragmentSource::Anywhere),
            _ => (&include.src, self.source_of(fragment)),
        };
        let combined_by = self.combined_by.as_ref().filter(|_| include.combine == Combine::Sub);
        Some(WantedFragment { include, src, source, combined_by })
    }

    /// Binds the include that was named last to the exchange `child`.
    pub(crate) fn bind(&mut self, child: u64) {
        debug_assert!(self.find(child).is_none(), "an exchange is asked for one fragment");
        if let Some(at) = self.wanted() {
            self.fragments[at].standing = FragmentStanding::Asked(child);
        }
    }

    /// The include that was named last is not requested.
    pub(crate) fn refuse(&mut self) {
        if let Some(at) = self.wanted() {
            self.give_up(at);
            self.settle_combination();
        }
    }

    /// Whether the fragment `child` is being sent.
    pub(crate) fn is_at(&self, child: u64) -> bool {
        self.in_fragment && self.fragments.front().is_some_and(|fragment| fragment.is_by(child))
    }

    /// Whether the page's head waits: for the head of a fragment, or for the beginning of the page,
    /// which may have fragments.
    pub(crate) fn awaits_head(&self) -> bool {
        let awaits = |fragment: &Fragment| {
            use FragmentStanding::{Alternative, Asked, Held, New};
            matches!(fragment.standing, New | Alternative | Asked(_) | Held)
        };
        let grows = self.fragments.len() < AT_ONCE && self.script.grows_below(HEAD_WAIT_MAX);
        !self.is_broken && (grows || self.fragments.iter().take(AT_ONCE).any(awaits))
    }

    /// Takes the cookies of fragments.
    pub(crate) fn take_cookies(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.cookies)
    }

    /// The number of the include that `child` is for.
    pub(crate) fn number_of(&self, child: u64) -> Option<u32> {
        let found = self.fragments.iter().find(|fragment| fragment.is_by(child));
        // `alt` is at its place only while `src` has failed.
        found.filter(|fragment| !fragment.is_second).map(|fragment| fragment.number)
    }

    /// Uses cached objects for the includes whose numbers `find` knows.
    pub(crate) fn place(&mut self, mut find: impl FnMut(u32) -> Option<Arc<Object>>) {
        for fragment in &mut self.fragments {
            if fragment.standing == FragmentStanding::New
                && let Some(object) = find(fragment.number)
            {
                fragment.standing = FragmentStanding::Here;
                fragment.object = Some(object);
            }
        }
        self.settle_combination();
    }

    /// The head of a fragment came with these cookies, and it is usable.
    pub(crate) fn accept(&mut self, child: u64, cookies: Vec<Vec<u8>>) {
        self.take_fragments_cookies(cookies);
        if let Some(fragment) = self.find(child) {
            fragment.standing = FragmentStanding::Answering(child);
        }
        self.settle_combination();
    }

    /// Parts of a combined response have its cookies.
    fn take_fragments_cookies(&mut self, cookies: Vec<Vec<u8>>) {
        for cookie in cookies {
            if self.cookies.len() < COOKIES_MAX && !self.cookies.contains(&cookie) {
                self.cookies.push(cookie);
            }
        }
    }

    /// The head of a combined response came, if that is what `child` is for.
    pub(crate) fn receive_combined(&mut self, child: u64, head: CombinedHead) {
        let is_main = self.is_main_of(child);
        if let Some(combination) = self.combination.as_mut().filter(|_| is_main) {
            combination.begin(head);
        }
    }

    /// A fragment is this cached object, with these cookies.
    pub(crate) fn accept_object(&mut self, child: u64, object: Arc<Object>, cookies: Vec<Vec<u8>>) {
        self.take_fragments_cookies(cookies);
        if self.is_main_of(child) {
            // A cached object is not used for a combined request.
            return self.lose(child);
        }
        let Some(fragment) = self.find(child) else { return };
        fragment.standing = FragmentStanding::Here;
        fragment.object = Some(object);
        self.settle_combination();
    }

    fn source_of(&self, fragment: &Fragment) -> FragmentSource {
        let of = |all: &Combination| all.source_of(fragment, &self.fragments);
        self.combination.as_deref().map_or(FragmentSource::Anywhere, of)
    }

    /// The combined request is sent.
    pub(crate) fn set_moment(&mut self, moment: Option<Rc<FillMoment>>) {
        if let Some(combination) = &mut self.combination {
            combination.set_moment(moment);
        }
    }

    fn settle_combination(&mut self) {
        if let Some(combination) = &mut self.combination {
            combination.settle(&mut self.fragments);
        }
    }

    /// Whether the include with this number is the combined request.
    fn is_main(&self, number: u32) -> bool {
        self.combination.as_ref().is_some_and(|combination| combination.is_main(number))
    }

    fn end_combined(&mut self, is_whole: bool) {
        if let Some(combination) = &mut self.combination {
            combination.end(is_whole, &mut self.fragments);
        }
    }

    fn is_main_of(&mut self, child: u64) -> bool {
        let number = self.find(child).map(|fragment| fragment.number);
        number.is_some_and(|number| self.is_main(number))
    }

    /// Whether the body breaks off here.
    pub(crate) const fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// A fragment failed, before its head or later.
    pub(crate) fn lose(&mut self, child: u64) {
        let is_it = |fragment: &Fragment| fragment.is_by(child);
        let Some(at) = self.fragments.iter().position(is_it) else { return };
        let fragment = &self.fragments[at];
        if fragment.has_begun && fragment.include.onerror != OnError::Continue {
            self.is_broken = true;
        }
        if self.is_main(fragment.number) {
            self.fragments[at].standing = FragmentStanding::Nothing;
            return self.end_combined(false);
        }
        if self.combination.as_ref().is_some_and(|all| all.looks_for(&self.fragments[at])) {
            self.fragments[at].standing = FragmentStanding::Missing;
        } else {
            self.give_up(at);
        }
        self.settle_combination();
    }

    /// Tries `alt`, or leaves the fragment out.
    fn give_up(&mut self, at: usize) {
        let fragment = &mut self.fragments[at];
        let has_other =
            fragment.include.alt.is_some() && !fragment.is_second && !fragment.has_begun;
        debug_assert!(
            !matches!(fragment.standing, FragmentStanding::Here | FragmentStanding::Nothing),
            "what is there is not given up"
        );
        fragment.is_second = true;
        fragment.standing =
            if has_other { FragmentStanding::Alternative } else { FragmentStanding::Nothing };
    }

    fn find(&mut self, child: u64) -> Option<&mut Fragment> {
        self.fragments.iter_mut().find(|fragment| fragment.is_by(child))
    }

    /// Takes the bytes that were pulled of the fragment that `BodyPiece::Fragment` named; false if
    /// it needs no more of them.
    pub(crate) fn take(&mut self, bytes: &[u8], pulled: Pulled) -> bool {
        let Some(fragment) = self.fragments.front_mut() else { return false };
        let FragmentStanding::Answering(child) = fragment.standing else { return false };
        let number = fragment.number;
        if self.is_main(number) {
            return self.take_of_main(child, bytes, pulled);
        }
        let Some(fragment) = self.fragments.front_mut() else { return false };
        fragment.has_begun |= !bytes.is_empty();
        if fragment.include.as_var {
            // Until it is complete, nothing of it was sent.
            fragment.has_begun = false;
            self.var.extend_from_slice(bytes);
            if self.var.len() > VAR_MAX {
                self.var.clear();
                self.lose(child);
                return false;
            }
        } else {
            self.ready = self.framed(bytes);
        }
        match pulled {
            Pulled::Some => {}
            Pulled::Broken => {
                self.var.clear();
                self.lose(child);
            }
            Pulled::All => self.end_fragment(),
        }
        true
    }

    /// Takes bytes of a combined response, which is not sent itself.
    fn take_of_main(&mut self, child: u64, bytes: &[u8], pulled: Pulled) -> bool {
        let fits = self.combination.as_mut().is_some_and(|all| all.take(bytes));
        if !fits || pulled == Pulled::Broken {
            self.lose(child);
            return false;
        }
        if pulled == Pulled::All {
            self.end_combined(true);
            self.drop_first();
        }
        true
    }

    fn end_fragment(&mut self) {
        let Some(fragment) = self.fragments.pop_front() else { return };
        if fragment.include.as_var {
            let var = Bytes::from(std::mem::take(&mut self.var));
            self.ready = self.framed(&var);
            debug_assert!(
                self.vars.iter().all(|known| known.0 != fragment.number),
                "what several includes share is kept once"
            );
            self.vars.push((fragment.number, var));
        }
        self.in_fragment = false;
        self.look_ahead();
    }
}
