//! The entries of a directory that a listing shows: as in Apache, what the client may request.
//!
//! Owns which entries are judged, and their limit. Access rules decide, rewrite rules do not.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use bolide_files::{DirEntry, FileKind};
use bolide_htaccess::{AheadKind, Effort};

use super::decide::{Decided, HtaccessRequest};
use super::effects::shown;
use super::looks::LookOf;
use super::ruling::{HtaccessPlaces, HtaccessRuling};
use super::target::{HtaccessTarget, TargetKind};
use crate::answer::Answer;
use crate::content::search::FileSearch;
use crate::ctx::StepCtx;
use crate::exchange::{NextStep, RequestStep};
use crate::phase::checks::AccessChecks;
use crate::request::Request;
use crate::route::LocationMatch;
use crate::site::Site;

/// LIMIT: entries of a listing that are judged; those beyond are not shown.
const JUDGED_MAX: usize = 2000;

/// A listing that is being judged. A step that waits for the disk is repeated.
#[derive(Debug, Default)]
pub(crate) struct JudgedListing {
    /// The entries; as long as they are the same, what was judged stays.
    of: Option<Arc<Vec<DirEntry>>>,
    /// The number of entries that were considered, and of those that were judged.
    next: usize,
    judged: usize,
    shown: Vec<DirEntry>,
}

impl JudgedListing {
    /// The number of entries that were considered so far.
    pub(crate) const fn considered(&self) -> usize {
        self.next
    }
}

/// The entries of the request's directory that the client may ask for.
///
/// # Errors
///
/// The next step, if a file lookup is needed first.
pub(crate) fn listed(
    request: &mut Request,
    answer: &mut Answer,
    search: &mut FileSearch,
    access: &mut AccessChecks,
    entries: Arc<Vec<DirEntry>>,
    (site, ctx): (&Site, &mut StepCtx<'_>),
) -> Result<Arc<Vec<DirEntry>>, NextStep> {
    let location = site.location(request.location);
    if location.htaccess.is_none() {
        return Ok(entries);
    }
    let named = match shown(request, location, &entries) {
        Cow::Borrowed(_) => Arc::clone(&entries),
        Cow::Owned(some) => Arc::new(some),
    };
    let mut listing = std::mem::take(&mut search.judged);
    if listing.of.as_ref().is_none_or(|of| *of != named) {
        listing = JudgedListing { of: Some(Arc::clone(&named)), ..JudgedListing::default() };
    }
    let effort = Effort::of_request(request.jit_taken.get());
    let mut asking = HtaccessRequest::new(request, answer, search, access, &effort);
    asking.is_silent = true;
    let judged = asking.judge_entries(&named, &mut listing, site, ctx);
    asking.request.jit_taken.set(effort.jit_taken());
    match judged {
        Ok(()) => Ok(Arc::new(listing.shown)),
        Err(next) => {
            search.judged = listing;
            Err(match next {
                NextStep::Probe(_) => NextStep::Probe(RequestStep::Listing),
                next => next,
            })
        }
    }
}

impl HtaccessRequest<'_> {
    fn judge_entries(
        &mut self,
        entries: &[DirEntry],
        listing: &mut JudgedListing,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<()> {
        let held = self.request.htaccess.clone().unwrap_or_default();
        let reads_names = self.names_count(&held, site);
        debug_assert!(listing.next <= entries.len(), "the entries are those of the last step");
        while let Some(entry) = entries.get(listing.next) {
            let is_directory = entry.kind == FileKind::Directory;
            let counts = (is_directory || reads_names) && self.is_here(entry, site);
            let may_ask = match counts {
                false => true,
                true if listing.judged == JUDGED_MAX => false,
                true => {
                    let may_ask = self.may_ask_for(entry, &held, site, ctx)?;
                    listing.judged += 1;
                    may_ask
                }
            };
            listing.next += 1;
            if may_ask {
                listing.shown.push(entry.clone());
            }
        }
        Ok(())
    }

    /// Whether rules for files may tell one file of the directory from another.
    fn names_count(&self, held: &HtaccessRuling, site: &Site) -> bool {
        let settings = &site.location(self.request.location).settings;
        let choices = held.places.as_ref().and_then(|places| places.choices.as_ref());
        let has_sections =
            choices.is_some_and(|all| !all.names.is_empty() || !all.conditions.is_empty());
        has_sections || !settings.apache_directories.is_empty()
    }

    /// Whether the same location has the entry: files decide there only.
    fn is_here(&self, entry: &DirEntry, site: &Site) -> bool {
        let server = site.server(self.request.server);
        let mut captures = self.request.captures.borrow().clone();
        let found = server.level.find(&self.uri_of(entry), &mut captures);
        let id = match found {
            LocationMatch::Location(id) | LocationMatch::LacksSlash(id) => id,
            LocationMatch::Nothing => server.root,
        };
        id == self.request.location
    }

    fn uri_of(&self, entry: &DirEntry) -> Vec<u8> {
        let between: &[u8] = if self.request.uri.ends_with(b"/") { b"" } else { b"/" };
        let behind: &[u8] = if entry.kind == FileKind::Directory { b"/" } else { b"" };
        [&self.request.uri[..], between, &entry.name, behind].concat()
    }

    fn may_ask_for(
        &mut self,
        entry: &DirEntry,
        held: &HtaccessRuling,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<bool> {
        let own = self.uri_of(entry);
        self.effort.resume();
        self.effort.spend(held.env.bytes().saturating_mul(2));
        let parent = self.request.uri.clone();
        let of = LookOf { kind: AheadKind::Url, parent, own: own.clone(), depth: 1 };
        let mut ruling = held.of_look(of);
        let directory = std::mem::replace(&mut self.request.uri, own);
        let admitted = match entry.kind {
            FileKind::Directory => self.find_places(&mut ruling, site, ctx),
            _ => self.find_places_of_file(&directory, entry, &mut ruling, site, ctx),
        };
        let admitted = admitted.and_then(|target| match ruling.places.is_some() {
            true => self.admit_look(&mut ruling, held, &target, site, ctx),
            false => Ok(()),
        });
        self.request.uri = directory;
        match admitted {
            Ok(()) => Ok(true),
            Err(NextStep::Fail(_)) => Ok(false),
            Err(next) => Err(next),
        }
    }

    /// As [`Self::find_places`], without a lookup of the file.
    fn find_places_of_file(
        &mut self,
        directory: &[u8],
        entry: &DirEntry,
        ruling: &mut HtaccessRuling,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<HtaccessTarget> {
        let Self { request, answer, search, reliance, .. } = self;
        let own = std::mem::replace(&mut request.uri, directory.to_vec());
        let target = search.htaccess_target(request, answer, site, ctx, reliance);
        request.uri = own;
        let mut target = target?;
        if target.file.last() != Some(&b'/') {
            target.file.push(b'/');
        }
        target.file.extend_from_slice(&entry.name);
        target.kind = TargetKind::File;
        let mut places = HtaccessPlaces { name: entry.name.to_vec(), ..HtaccessPlaces::default() };
        search.htaccess_levels(request, &target, site, ctx, &mut places.levels, reliance)?;
        ruling.places = (!places.levels.is_empty()).then(|| Rc::new(places));
        Ok(target)
    }
}
