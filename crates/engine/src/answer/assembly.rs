//! The body of a page that is put together while it leaves: literals and fragments in their order.
//!
//! ```text
//!            an include comes up           its turn           End
//!   (text) ───────────────────▶ New ─▶ Asked ─▶ Answering ─────────▶ (text)
//!                                │       └─ failed: New with `alt`, else Nothing
//!                                ├─ refused: Nothing
//!                                └─ not kept, and asked for with others: Missing ─▶ New
//! ```
//! Owns which fragments are asked for when, and their order. Who asks and who pulls from them is
//! the worker. Easiest to break: a fragment that failed before its first byte gives nothing; one
//! that breaks later breaks the page.

mod pulling;

use std::collections::VecDeque;
use std::sync::Arc;

use bolide_cache::Object;
use bolide_esi::splice::Joint;
use bolide_esi::{Combine, EsiInclude, OnError};
use bolide_http::negotiate::Coding;
use bytes::Bytes;

use super::Inflow;
use super::combined::{Combination, CombinedHead};
use super::fragment::{Fragment, FragmentStanding};
use super::script::ScriptState;
use crate::answer::growth::Growth;
use crate::subrequest::FragmentSource;

/// LIMIT: fragments of one page that are asked for at once.
pub(crate) const AT_ONCE: usize = 8;
/// LIMIT: bytes of a page that comes which are waited for before its head leaves.
const HEAD_WAIT_MAX: u64 = 256 * 1024;
/// LIMIT: bytes of a kept fragment whose compressed form is kept for pages.
pub(super) const PARTS_MAX: u64 = 1024 * 1024;
/// LIMIT: cookies that fragments of one page set.
const COOKIES_MAX: usize = 64;
/// LIMIT: bytes of a fragment that is used at several places (`as-var`); a larger one is none.
const VAR_MAX: usize = 256 * 1024;
/// How a pull from a fragment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulled {
    /// There may be more.
    Some,
    /// That was all of it.
    All,
    /// It cannot be completed.
    Broken,
}

/// A fragment that is to be asked for.
#[derive(Debug)]
pub(crate) struct WantedFragment<'a> {
    pub(crate) include: &'a EsiInclude,
    /// The address of its to ask.
    pub(crate) src: &'a Bytes,
    pub(crate) source: FragmentSource,
    /// The address that is asked for it and others together, if the page names one.
    pub(crate) combined_by: Option<&'a Bytes>,
}

/// A page on its way.
#[derive(Debug)]
pub(crate) struct PageAssembly {
    script: ScriptState,
    fragments: VecDeque<Fragment>,
    combination: Option<Box<Combination>>,
    /// The address of the first include that asks for others (`combine='main'`).
    combined_by: Option<Bytes>,
    /// Whether the first of them is what is sent now.
    in_fragment: bool,
    /// Includes that came up.
    count: u32,
    /// What several includes share: number of the first, bytes.
    vars: Vec<(u32, Bytes)>,
    var: Vec<u8>,
    /// What leaves next.
    ready: Bytes,
    joint: Option<(Joint, i8)>,
    /// What fragments set before the page's head left.
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

    /// A kept page.
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

    /// A page that an origin sends for us alone; `len` is what it told.
    pub(crate) fn inflow(inflow: Inflow, len: Option<u64>) -> Self {
        Self::new(ScriptState::inflow(inflow, len))
    }

    /// Has the page leave in `coding`. Nothing of it may have been read.
    pub(crate) fn encode(&mut self, coding: Coding, level: i8) {
        debug_assert!(
            !self.is_headed && self.ready.is_empty(),
            "nothing was read before the coding"
        );
        self.joint = Some((Joint::new(coding), level));
        self.script.encode(coding, level);
    }

    /// Where an origin's page goes through.
    pub(crate) const fn inflow_mut(&mut self) -> Option<&mut Inflow> {
        self.script.inflow_mut()
    }

    /// The same.
    pub(crate) const fn origin(&self) -> Option<&Inflow> {
        self.script.origin()
    }

    /// Takes what an origin sent of the page.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        self.script.push(bytes);
        self.look_ahead();
    }

    /// The origin has sent all of the page.
    pub(crate) fn finish(&mut self) {
        self.script.finish();
        self.look_ahead();
    }

    /// The rest of the page will not come.
    pub(crate) fn fail(&mut self) {
        self.script.fail();
    }

    /// Whether the client waits for the origin of the page or of a fragment.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Takes in what there is of a page that is fetched.
    pub(crate) fn read_on(&mut self) {
        self.script.refill();
        self.look_ahead();
    }

    /// Takes note of the includes that are known.
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
                // It has nothing of its own to give.
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

    /// Whether fragments are to be asked for.
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
        // What leaves next waits for nothing that leaves later.
        (at == 0 || self.fragments.iter().filter(is_busy).count() < AT_ONCE).then_some(at)
    }

    /// The include that is to be asked for next.
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

    /// Notes that the include that was next is asked for by the exchange `child`.
    pub(crate) fn bind(&mut self, child: u64) {
        debug_assert!(self.find(child).is_none(), "an exchange is asked for one fragment");
        if let Some(at) = self.wanted() {
            self.fragments[at].standing = FragmentStanding::Asked(child);
        }
    }

    /// Notes that the include that was next is not asked for.
    pub(crate) fn refuse(&mut self) {
        if let Some(at) = self.wanted() {
            self.give_up(at);
            self.settle_combination();
        }
    }

    /// Whether the fragment that `child` asked for is what is sent now.
    pub(crate) fn is_at(&self, child: u64) -> bool {
        self.in_fragment && self.fragments.front().is_some_and(|fragment| fragment.is_by(child))
    }

    /// Whether the head of a fragment is awaited, or the beginning of the page, which may have
    /// fragments in it.
    pub(crate) fn awaits_head(&self) -> bool {
        let awaits = |fragment: &Fragment| {
            use FragmentStanding::{Alternative, Asked, Held, New};
            matches!(fragment.standing, New | Alternative | Asked(_) | Held)
        };
        let grows = self.fragments.len() < AT_ONCE && self.script.grows_below(HEAD_WAIT_MAX);
        !self.is_broken && (grows || self.fragments.iter().take(AT_ONCE).any(awaits))
    }

    /// What fragments set.
    pub(crate) fn take_cookies(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.cookies)
    }

    /// The number of the include that `child` was asked for.
    pub(crate) fn number_of(&self, child: u64) -> Option<u32> {
        let found = self.fragments.iter().find(|fragment| fragment.is_by(child));
        // An alternative stands at the place only while the first choice fails.
        found.filter(|fragment| !fragment.is_second).map(|fragment| fragment.number)
    }

    /// Puts kept answers where `find` knows some for the numbers of includes.
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

    /// The head of a fragment came with these cookies, and it is good.
    pub(crate) fn accept(&mut self, child: u64, cookies: Vec<Vec<u8>>) {
        self.cookies.extend(cookies);
        self.cookies.truncate(COOKIES_MAX);
        if let Some(fragment) = self.find(child) {
            fragment.standing = FragmentStanding::Answering(child);
        }
        self.settle_combination();
    }

    /// The head of the answer for several fragments came, if that is what `child` asked for.
    pub(crate) fn note_combined(&mut self, child: u64, head: CombinedHead) {
        let is_main = self.is_main_of(child);
        if let Some(combination) = self.combination.as_mut().filter(|_| is_main) {
            combination.begin(head);
        }
    }

    /// A fragment is this kept answer, with these cookies.
    pub(crate) fn accept_object(&mut self, child: u64, object: Arc<Object>, cookies: Vec<Vec<u8>>) {
        self.cookies.extend(cookies);
        self.cookies.truncate(COOKIES_MAX);
        if self.is_main_of(child) {
            // What is kept is no answer to this request.
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

    fn settle_combination(&mut self) {
        if let Some(combination) = &mut self.combination {
            combination.settle(&mut self.fragments);
        }
    }

    /// Whether the include of this number is the one whose address is asked for others.
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

    /// Whether it ends where it is.
    pub(crate) const fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// A fragment will not come, or not to its end.
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

    /// Tries `alt`, or nothing.
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

    /// Takes what was pulled from the fragment that `BodyPiece::Fragment` named; false if nothing more
    /// of it is wanted.
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
            // Until it is over, nothing of it has left.
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

    /// Takes what came of the answer for several fragments, of which nothing leaves as it is.
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
