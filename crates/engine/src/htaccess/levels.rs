//! The directories on the path to a file, and the `.htaccess` file of each.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bolide_base::errno::EISDIR;
use bolide_conf::model::{ApacheDirectory, LogLevel, Mapping};
use bolide_files::{FileKind, Known, OpenFailure, OpenFile, ProbePolicy, Remember, Want};
use bolide_htaccess::{
    AllowedOverrides, ApacheNames, FILE_MAX, HtaccessFault, HtaccessFile, ServerPlace,
    parse_knowing,
};

use super::decide::stopped;
use super::reliance::Reliance;
use super::ruling::{HtaccessLevel, LevelSource};
use super::target::{HtaccessTarget, TargetKind};
use crate::answer::Answer;
use crate::content::search::FileSearch;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{NextStep, RequestStep};
use crate::log_lines;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;
use crate::vars::preview::preview;

/// The absence of a file is trusted until inotify reports the file.
fn absence_policy() -> ProbePolicy {
    ProbePolicy { failures: Remember::Failures, ..ProbePolicy::default() }
}

/// A parsed file, or its error.
type FileReading = Result<Rc<HtaccessFile>, HtaccessFault>;

/// What a file was read as, and for which names. A reload may change them.
struct KnownReading {
    of_names: RefCell<(Arc<ApacheNames>, FileReading)>,
    /// Whether the log has its notes.
    is_told: Cell<bool>,
}

impl KnownReading {
    fn new(bytes: &[u8], names: &Arc<ApacheNames>) -> Self {
        let reading = parse_knowing(bytes, names).map(Rc::new);
        let of_names = RefCell::new((Arc::clone(names), reading));
        Self { of_names, is_told: Cell::new(false) }
    }

    /// What the file is for `names`.
    fn of(&self, names: &Arc<ApacheNames>, file: &OpenFile) -> FileReading {
        let mut own = self.of_names.borrow_mut();
        if !Arc::ptr_eq(&own.0, names) {
            let bytes = file.content().filter(|_| own.0 != *names);
            let fresh = bytes.map(|bytes| parse_knowing(bytes, names).map(Rc::new));
            *own = (Arc::clone(names), fresh.unwrap_or_else(|| own.1.clone()));
        }
        own.1.clone()
    }
}

impl FileSearch {
    /// Resolves the path of the request on disk.
    ///
    /// # Errors
    ///
    /// The next step, if a file lookup is needed first or the request is refused.
    pub(super) fn htaccess_target(
        &mut self,
        request: &Request,
        answer: &Answer,
        site: &Site,
        ctx: &mut StepCtx<'_>,
        reliance: &Reliance,
    ) -> Result<HtaccessTarget, NextStep> {
        let location = site.location(request.location);
        let mut target = HtaccessTarget::default();
        let scope = VariableScope::new(request, answer, site, ctx);
        let root = site.location(site.server(request.server).root);
        let mut push = |scope: &VariableScope<'_>| {
            scope.push_root(location, &mut target.root);
            scope.push_root(root, &mut target.document_root);
        };
        match location.fixed_root.is_some() && root.fixed_root.is_some() {
            true => push(&scope),
            // `$1` stays what the location's expression captured.
            false => preview(&scope, push),
        }
        let rest = match location.settings.root.mapping {
            Mapping::Whole => &request.uri[..],
            Mapping::Without(len) => {
                target.prefix.extend_from_slice(request.uri.get(..len).unwrap_or_default());
                request.uri.get(len..).unwrap_or_default()
            }
            Mapping::Nothing => {
                log_lines::error(request, site, ctx, LogLevel::Error, |out| {
                    out.extend_from_slice(
                        b"\"apache_htaccess\" needs a \"root\", or an \"alias\" in a location \
                          that is a prefix",
                    );
                });
                return Err(NextStep::Fail(500));
            }
        };
        let is_closed = target.root.ends_with(b"/");
        for path in [&mut target.root, &mut target.prefix, &mut target.document_root] {
            while path.last() == Some(&b'/') {
                path.pop();
            }
        }
        debug_assert!(!target.root.ends_with(b"/"), "a root has no slash at its end");
        let mut whole = target.root.clone();
        if is_closed || rest.starts_with(b"/") {
            whole.push(b'/');
            whole.extend_from_slice(rest.strip_prefix(b"/").unwrap_or(rest));
        } else if !rest.is_empty() {
            // The file would be outside of the alias's directory, whose files apply.
            log_lines::error(request, site, ctx, LogLevel::Error, |out| {
                out.extend_from_slice(
                    b"\"apache_htaccess\" needs an \"alias\" that ends with a slash as its \
                      location does",
                );
            });
            return Err(NextStep::Fail(500));
        }
        if whole.contains(&0) || request.has_dots {
            return Err(NextStep::Fail(400));
        }
        if matches!(location.settings.root.mapping, Mapping::Without(_)) {
            leave_file(&mut target, ctx, reliance)?;
        }
        self.settle_target(&whole, location.pass.is_some(), &mut target, ctx, reliance)?;
        Ok(target)
    }

    /// Finds the first component of `whole` that does not exist.
    fn settle_target(
        &mut self,
        whole: &[u8],
        is_script: bool,
        target: &mut HtaccessTarget,
        ctx: &mut StepCtx<'_>,
        reliance: &Reliance,
    ) -> Result<(), NextStep> {
        let policy = ProbePolicy::default();
        let bare = whole.strip_suffix(b"/").unwrap_or(whole);
        let want = if is_script { Want::Stat } else { Want::OPEN };
        let root_len = target.root.len();
        let standing = match ctx.files.lookup(bare, ctx.now, &policy) {
            Known::Stale | Known::Unknown => standing(bare, root_len, ctx),
            _ => PathStanding::Unknown,
        };
        let (is_missing, policy) = match standing {
            PathStanding::Missing => (true, policy),
            PathStanding::InDirectory => (false, absence_policy()),
            PathStanding::Unknown => (false, policy),
        };
        let mut end = match is_missing {
            true => root_len,
            false => match look(bare, want, &policy, ctx, &Reliance::default())? {
                Err(_) => root_len,
                Ok(kind) => {
                    reliance.relies_on(ctx.files, bare, &policy);
                    target.kind = kind;
                    // A file with a final slash does not exist.
                    if kind == TargetKind::File && bare.len() < whole.len() {
                        bare.len()
                    } else {
                        let is_directory = kind == TargetKind::Directory;
                        target.file = if is_directory { whole } else { bare }.to_vec();
                        return Ok(());
                    }
                }
            },
        };
        let policy = absence_policy();
        while end < bare.len() {
            let from = end + 1;
            let next = bare[from..].iter().position(|byte| *byte == b'/');
            end = next.map_or(bare.len(), |len| from + len);
            match look(&bare[..end], Want::Stat, &policy, ctx, reliance)? {
                Ok(TargetKind::Directory) => {}
                Ok(TargetKind::File) => {
                    target.kind = TargetKind::File;
                    break;
                }
                Ok(TargetKind::Missing) => break,
                Err(failure) if failure.is_absence() => break,
                // An unreadable file may restrict access.
                Err(failure) => return Err(NextStep::Fail(failure.status())),
            }
        }
        target.file = whole[..end].to_vec();
        target.path_info = whole[end..].to_vec();
        debug_assert_eq!(
            target.file.len() + target.path_info.len(),
            whole.len(),
            "a path is cut in two"
        );
        Ok(())
    }

    /// Collects the directives for all directories up to `target`: those of the configuration from
    /// the root of the file system on, files from the location's root on or from where the
    /// configuration has them read.
    ///
    /// # Errors
    ///
    /// As [`Self::htaccess_target`].
    pub(super) fn htaccess_levels(
        &mut self,
        request: &Request,
        target: &HtaccessTarget,
        site: &Site,
        ctx: &mut StepCtx<'_>,
        levels: &mut Vec<HtaccessLevel>,
        reliance: &Reliance,
    ) -> Result<(), NextStep> {
        let settings = &site.location(request.location).settings;
        let places = &settings.apache_directories[..];
        configured(places, b"", ServerPlace::is_of_server, levels);
        let is_directory = target.kind == TargetKind::Directory;
        let mut allowed = match settings.apache_htaccess {
            true => AllowedOverrides::ALL,
            false => AllowedOverrides::NONE,
        };
        let mut end = if places.is_empty() { target.root.len() } else { 0 };
        let mut reads_from = target.root.len();
        loop {
            let mut path = target.file.get(..end).unwrap_or(&target.root).to_vec();
            path.push(b'/');
            let directory: Box<[u8]> = path.clone().into();
            debug_assert!(directory.ends_with(b"/"), "a directory ends with a slash");
            if let Some(own) = configured(places, &directory, |it| it.is_of(&directory), levels) {
                allowed = own;
                reads_from = reads_from.min(end);
            }
            path.extend_from_slice(b".htaccess");
            self.path = path;
            if allowed.reads()
                && end >= reads_from
                && let Some(file) = self.htaccess_file(request, site, ctx, reliance)?
            {
                if let Some(fault) = file.beyond(allowed) {
                    return Err(self.htaccess_fault(request, &fault, site, ctx));
                }
                levels.push(HtaccessLevel { directory, source: LevelSource::Read(file) });
            }
            let Some(rest) = target.file.get(end + 1..).filter(|rest| !rest.is_empty()) else {
                break;
            };
            match rest.iter().position(|byte| *byte == b'/') {
                Some(len) => end += 1 + len,
                None if is_directory => end = target.file.len(),
                None => break,
            }
        }
        for one in places {
            let found = one.place.finds(&target.file);
            if found.map_err(|stop| stopped(request, stop, None, site, ctx))? {
                levels.push(level_of(&one.place, b""));
            }
        }
        Ok(())
    }

    /// The file at the path, if there is one.
    fn htaccess_file(
        &self,
        request: &Request,
        site: &Site,
        ctx: &mut StepCtx<'_>,
        reliance: &Reliance,
    ) -> Result<Option<Rc<HtaccessFile>>, NextStep> {
        let policy = absence_policy();
        let known = ctx.files.lookup(&self.path, ctx.now, &policy);
        reliance.relies_on(ctx.files, &self.path, &policy);
        let names = &site.location(request.location).settings.apache_names;
        let failure = match known {
            Known::File(file) => match file.reading(|bytes| KnownReading::new(bytes, names)) {
                Some(reading) => {
                    return match reading.of(names, &file) {
                        Ok(read) => {
                            if !read.notes().is_empty() && !reading.is_told.replace(true) {
                                self.tell_notes(request, read.notes(), site, ctx);
                            }
                            let weight = read.weight() as u64;
                            ctx.files.weigh_reading(&self.path, &file, weight, ctx.now);
                            Ok(Some(read))
                        }
                        Err(fault) => Err(self.htaccess_fault(request, &fault, site, ctx)),
                    };
                }
                None => {
                    let message = format!("file is larger than {FILE_MAX} bytes");
                    let fault = HtaccessFault { line: 1, message };
                    return Err(self.htaccess_fault(request, &fault, site, ctx));
                }
            },
            Known::Missing(OpenFailure::NotFound | OpenFailure::NotADirectory) => return Ok(None),
            Known::Missing(failure) | Known::Closed(_, failure) => failure,
            Known::Directory(_) => OpenFailure::Other(EISDIR),
            Known::Seen(meta) if meta.kind != FileKind::File => OpenFailure::Other(EISDIR),
            // The content of a file of which only the metadata is known is read now.
            Known::Seen(_) | Known::Stale | Known::Unknown => {
                let want = Want::Open { content_max: FILE_MAX as u64 };
                let probe = ctx.files.probe(&self.path, want, &policy);
                ctx.effects.push(StepEffect::Probe(Box::new(probe)));
                return Err(NextStep::Probe(RequestStep::Htaccess));
            }
        };
        self.log_failure(
            request,
            LogLevel::Crit,
            "unable to read htaccess file, open()",
            failure,
            site,
            ctx,
        );
        Err(NextStep::Fail(403))
    }

    /// Logs the lines of a file that mean less than they say.
    #[cold]
    fn tell_notes(
        &self,
        request: &Request,
        notes: &[HtaccessFault],
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) {
        for note in notes {
            log_lines::error(request, site, ctx, LogLevel::Warn, |out| {
                out.extend_from_slice(&self.path);
                out.push(b':');
                out.extend_from_slice(note.to_string().as_bytes());
            });
        }
    }

    fn htaccess_fault(
        &self,
        request: &Request,
        fault: &HtaccessFault,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let path = &self.path;
        log_lines::error(request, site, ctx, LogLevel::Alert, |out| {
            out.extend_from_slice(path);
            out.push(b':');
            out.extend_from_slice(fault.to_string().as_bytes());
        });
        NextStep::Fail(500)
    }
}

fn level_of(place: &Arc<ServerPlace>, directory: &[u8]) -> HtaccessLevel {
    let source = LevelSource::Configured(Arc::clone(place));
    HtaccessLevel { directory: directory.into(), source }
}

/// Adds the matching sections; returns what the last `AllowOverride` of them permits.
fn configured(
    places: &[ApacheDirectory],
    directory: &[u8],
    is_meant: impl Fn(&ServerPlace) -> bool,
    levels: &mut Vec<HtaccessLevel>,
) -> Option<AllowedOverrides> {
    let mut allowed = None;
    for one in places.iter().filter(|one| is_meant(&one.place)) {
        allowed = one.place.overrides().or(allowed);
        levels.push(level_of(&one.place, directory));
    }
    allowed
}

/// For an alias of a file, the path begins at the file's directory.
fn leave_file(
    target: &mut HtaccessTarget,
    ctx: &mut StepCtx<'_>,
    reliance: &Reliance,
) -> Result<(), NextStep> {
    let policy = ProbePolicy::default();
    if look(&target.root, Want::Stat, &policy, ctx, reliance)? == Ok(TargetKind::File) {
        for path in [&mut target.root, &mut target.prefix] {
            let end = path.iter().rposition(|byte| *byte == b'/');
            path.truncate(end.unwrap_or(0));
        }
    }
    Ok(())
}

/// What the table of open files knows of a path's directories.
enum PathStanding {
    /// The first missing component is watched: nothing below it needs a lookup.
    Missing,
    /// All directories are known, so that absence can be known as well.
    InDirectory,
    Unknown,
}

/// The state of `path` below its first `root` bytes.
fn standing(path: &[u8], root: usize, ctx: &mut StepCtx<'_>) -> PathStanding {
    let policy = absence_policy();
    let mut end = root;
    while end < path.len() {
        let from = end + 1;
        let len = path[from..].iter().position(|byte| *byte == b'/');
        end = len.map_or(path.len(), |len| from + len);
        match ctx.files.lookup(&path[..end], ctx.now, &policy) {
            Known::Directory(_) => {}
            Known::Missing(failure) if failure.is_absence() => return PathStanding::Missing,
            Known::Stale | Known::Unknown if end == path.len() => {
                return PathStanding::InDirectory;
            }
            _ => return PathStanding::Unknown,
        }
    }
    PathStanding::Unknown
}

/// The file at `path`, or why it is not known.
fn look(
    path: &[u8],
    want: Want,
    policy: &ProbePolicy,
    ctx: &mut StepCtx<'_>,
    reliance: &Reliance,
) -> Result<Result<TargetKind, OpenFailure>, NextStep> {
    let path = if path.is_empty() { b"/" } else { path };
    let known = ctx.files.lookup(path, ctx.now, policy);
    reliance.relies_on(ctx.files, path, policy);
    match known {
        Known::File(_) | Known::Seen(_) => Ok(Ok(TargetKind::File)),
        Known::Directory(_) => Ok(Ok(TargetKind::Directory)),
        Known::Closed(meta, _) if meta.kind == FileKind::Directory => Ok(Ok(TargetKind::Directory)),
        Known::Closed(..) => Ok(Ok(TargetKind::File)),
        Known::Missing(failure) => Ok(Err(failure)),
        Known::Stale | Known::Unknown => {
            let probe = ctx.files.probe(path, want, policy);
            ctx.effects.push(StepEffect::Probe(Box::new(probe)));
            Err(NextStep::Probe(RequestStep::Htaccess))
        }
    }
}
