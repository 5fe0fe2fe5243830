//! The rewrite phase of a server block or location: `rewrite`, `set`, `if`, `break`, `return`.
//!
//! Runs instructions in file order. A true `if` changes the location of the request; the
//! instructions that run are those of the block where the phase began. Easiest to break: a file
//! test waits for a file lookup and is repeated, so an instruction changes the request only when it
//! completes.

mod op;
mod replacing;

use bolide_conf::model::{FileTest, LogLevel, SetTarget, Then};
use bolide_conf::vars::Template;
use bolide_files::{FileKind, Known, Want};
use bolide_http::escape::push_log;

use crate::answer::Answer;
use crate::content::search::FileSearch;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{NextStep, RequestStep};
use crate::explain::trace::{trace_before, trace_op};
use crate::filter::edits::edit_request;
use crate::log_lines;
use crate::request::Request;
use crate::request::RequestNote;
use crate::route::LocationIndex;
use crate::site::Site;
use crate::vars::{CaptureGroups, VariableScope};
use bolide_patterns::{CapturePattern, MatchFailure};

pub(crate) use op::{CompiledRewrite, CompiledTest, Op, RewriteCursor};
use replacing::{change_uri, is_encoded, redirect_by};

/// The result of an instruction.
pub(crate) enum RewriteOutcome {
    /// Continue with the instruction this many places ahead.
    Go(usize),
    /// The end of the phase.
    End,
    /// The end of this phase; continue with this step.
    Leave(NextStep),
    /// Wait for a file lookup, then repeat the instruction.
    Wait,
}

impl Request {
    /// Logs a match that exceeded the limit of steps.
    pub(crate) fn log_match_failure(
        &self,
        failure: &MatchFailure,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) {
        log_lines::error(self, site, ctx, LogLevel::Alert, |out| {
            out.extend_from_slice(b"pcre2_match() failed: -");
            bolide_http::digits::push_decimal(out, u64::from(failure.code.unsigned_abs()));
            out.extend_from_slice(b" on \"");
            out.extend_from_slice(&failure.subject);
            out.extend_from_slice(b"\" using \"");
            out.extend_from_slice(&failure.pattern);
            out.push(b'"');
        });
    }

    /// Logs the messages of variables; `doing` is the activity that nginx's line names.
    #[cold]
    pub(crate) fn log_notes(&mut self, doing: &[u8], site: &Site, ctx: &mut StepCtx<'_>) {
        let notes = std::mem::take(self.notes.get_mut());
        let name = |slot: u16| {
            let named = site.http().and_then(|http| http.named.get(usize::from(slot)));
            named.map_or(&b""[..], |name| name.as_bytes())
        };
        let about = |words: &[u8], slot: u16| {
            let mut line = words.to_vec();
            push_log(&mut line, name(slot));
            line
        };
        for note in notes {
            let (level, line) = match note {
                RequestNote::Match(failure) => {
                    self.log_match_failure(&failure, site, ctx);
                    continue;
                }
                RequestNote::Uninitialized(slot) => {
                    let mut line = about(b"using uninitialized \"", slot);
                    line.extend_from_slice(b"\" variable");
                    (LogLevel::Warn, line)
                }
                RequestNote::Cycle(slot) => {
                    let mut line = about(b"cycle while evaluating variable \"", slot);
                    line.push(b'"');
                    (LogLevel::Error, line)
                }
                RequestNote::Text(text) => (LogLevel::Error, text.into_bytes()),
                RequestNote::Error(line) => (LogLevel::Error, line),
                RequestNote::Notice(line) => (LogLevel::Notice, line),
                RequestNote::Critical(line) => (LogLevel::Crit, line),
                RequestNote::Alert(line) => (LogLevel::Alert, line),
            };
            log_lines::error(self, site, ctx, level, |out| {
                out.extend_from_slice(&line);
                out.extend_from_slice(doing);
            });
        }
    }
}

/// Runs instructions from `cursor` on.
pub(crate) fn rewrite(
    request: &mut Request,
    answer: &mut Answer,
    search: &mut FileSearch,
    cursor: RewriteCursor,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    let ops = &site.location(cursor.program).program;
    let mut at = cursor.op as usize;
    while let Some(op) = ops.get(at) {
        trace_before(request);
        let outcome = match op {
            Op::Rewrite(rule) => apply_rule(request, answer, rule, cursor.program, site, ctx),
            Op::Return(returned) => {
                RewriteOutcome::Leave(answer.returned(request, returned, site, ctx))
            }
            Op::Set { target, value } => set_variable(request, answer, *target, value, site, ctx),
            Op::If { test, inner, location } => {
                // It may ask for anything, such as the path: this check is no other request's.
                request.arrival.check_at(request.id[1]);
                match holds(request, answer, search, test, cursor.program, site, ctx) {
                    Ok(true) => {
                        if let Some(inner) = *location {
                            request.location = inner;
                            request.arrival.bend();
                        }
                        RewriteOutcome::Go(1)
                    }
                    Ok(false) => RewriteOutcome::Go(1 + inner),
                    Err(outcome) => outcome,
                }
            }
            Op::Break => {
                request.rewritten_here |= std::mem::take(&mut request.uri_changed);
                RewriteOutcome::End
            }
        };
        trace_op(request, &answer.location, (cursor.program, at), op, &outcome, site);
        match outcome {
            RewriteOutcome::Go(further) => {
                at += further;
                debug_assert!(at <= ops.len(), "an `if` leads to the end of its block at most");
            }
            RewriteOutcome::End => break,
            RewriteOutcome::Leave(next) => return next,
            RewriteOutcome::Wait => {
                return NextStep::Probe(RequestStep::Rewrite(RewriteCursor {
                    op: at as u32,
                    ..cursor
                }));
            }
        }
        if !request.notes.get_mut().is_empty() {
            request.log_notes(b"", site, ctx);
            if request.is_undecided.get() {
                return NextStep::Fail(500);
            }
        }
    }
    if cursor.program != site.server(request.server).root
        && !site.location(request.location).settings.input_edits.is_empty()
    {
        edit_request(request, answer, site, ctx);
    }
    end_rewrite(request, cursor.program, site, ctx)
}

/// Executes a `rewrite`.
fn apply_rule(
    request: &mut Request,
    answer: &mut Answer,
    rule: &CompiledRewrite,
    program: LocationIndex,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> RewriteOutcome {
    let matched = request.captures.get_mut().capture(&rule.pattern, &request.uri);
    if let Some(failure) = request.captures.get_mut().take_failure() {
        request.log_match_failure(&failure, site, ctx);
        return RewriteOutcome::Leave(NextStep::Fail(500));
    }
    if site.location(program).settings.rewrite_log {
        log_match(request, &rule.pattern, &request.uri, matched, site, ctx);
    }
    if !matched {
        request.captures.get_mut().forget_groups();
        return RewriteOutcome::Go(1);
    }
    request.encodes_groups = false;
    match rule.conf.then {
        Then::Redirect(status) => {
            request.rewritten_here = true;
            redirect_by(request, answer, &rule.conf, program, site, ctx);
            RewriteOutcome::Leave(NextStep::Redirect(status))
        }
        then => match change_uri(request, answer, &rule.conf, program, site, ctx) {
            Some(next) => RewriteOutcome::Leave(next),
            None if then == Then::Continue => RewriteOutcome::Go(1),
            None => RewriteOutcome::End,
        },
    }
}

/// Executes a `set`.
fn set_variable(
    request: &mut Request,
    answer: &mut Answer,
    target: SetTarget,
    value: &Template,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> RewriteOutcome {
    let mut text = std::mem::take(&mut answer.scratch);
    text.clear();
    push_value(request, answer, value, &mut text, site, ctx);
    assign(request, target, &text, site, ctx);
    answer.scratch = text;
    RewriteOutcome::Go(1)
}

/// Appends the value of a text of the phase.
fn push_value(
    request: &Request,
    answer: &Answer,
    template: &Template,
    out: &mut Vec<u8>,
    site: &Site,
    ctx: &StepCtx<'_>,
) {
    let encodes = request.encodes_groups && is_encoded(request);
    let groups = if encodes { CaptureGroups::Encoded } else { CaptureGroups::Plain };
    VariableScope::new(request, answer, site, ctx).expand_as(template, groups, out);
}

/// Whether a condition holds; or the outcome if that is not known.
fn holds(
    request: &mut Request,
    answer: &mut Answer,
    search: &mut FileSearch,
    test: &CompiledTest,
    program: LocationIndex,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Result<bool, RewriteOutcome> {
    if let CompiledTest::Is(test, path, wanted) = test {
        return Ok(wanted.meets(search.is_file(request, answer, *test, path, site, ctx)?));
    }
    let mut text = std::mem::take(&mut answer.scratch);
    text.clear();
    let var = match test {
        CompiledTest::True(var) | CompiledTest::Equal(var, ..) | CompiledTest::Match(var, ..) => {
            var
        }
        CompiledTest::Is(..) => return Ok(false),
    };
    VariableScope::new(request, answer, site, ctx).write(var, &mut text);
    let holds = match test {
        CompiledTest::True(_) | CompiledTest::Is(..) => Ok(!text.is_empty() && text[..] != *b"0"),
        CompiledTest::Equal(_, operand, wanted) => {
            let len = text.len();
            push_value(request, answer, operand, &mut text, site, ctx);
            Ok(wanted.meets(text[..len] == text[len..]))
        }
        CompiledTest::Match(_, pattern, wanted) => {
            test_match(request, pattern, &text, program, site, ctx).map(|holds| wanted.meets(holds))
        }
    };
    answer.scratch = text;
    holds
}

impl FileSearch {
    /// Tests a path by the table of open files.
    fn is_file(
        &mut self,
        request: &Request,
        answer: &Answer,
        test: FileTest,
        path: &Template,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Result<bool, RewriteOutcome> {
        let mut name = std::mem::take(&mut self.path);
        name.clear();
        push_value(request, answer, path, &mut name, site, ctx);
        // For the system a name ends at its first NUL.
        name.truncate(memchr::memchr(0, &name).unwrap_or(name.len()));
        self.path = name;
        if self.path.is_empty() {
            return Ok(false);
        }
        let policy = &site.location(request.location).policy;
        let meta = match ctx.files.lookup(&self.path, ctx.now, policy) {
            Known::File(file) => file.meta,
            Known::Directory(meta) | Known::Seen(meta) | Known::Closed(meta, _) => meta,
            Known::Missing(failure) => {
                if !failure.is_absence() {
                    self.log_failure(request, LogLevel::Crit, "stat()", failure, site, ctx);
                }
                return Ok(false);
            }
            Known::Stale | Known::Unknown => {
                let probe = ctx.files.probe(&self.path, Want::Stat, policy);
                ctx.effects.push(StepEffect::Probe(Box::new(probe)));
                return Err(RewriteOutcome::Wait);
            }
        };
        Ok(match test {
            FileTest::File => meta.kind == FileKind::File,
            FileTest::Directory => meta.kind == FileKind::Directory,
            FileTest::Exists => matches!(meta.kind, FileKind::File | FileKind::Directory),
            FileTest::Executable => meta.mode & 0o100 != 0,
        })
    }
}

fn log_match(
    request: &Request,
    pattern: &CapturePattern,
    subject: &[u8],
    matched: bool,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) {
    let words: &[u8] = if matched { b"\" matches \"" } else { b"\" does not match \"" };
    log_lines::error(request, site, ctx, LogLevel::Notice, |out| {
        out.push(b'"');
        out.extend_from_slice(pattern.source());
        out.extend_from_slice(words);
        out.extend_from_slice(subject);
        out.push(b'"');
    });
}

fn end_rewrite(
    request: &mut Request,
    program: LocationIndex,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    let root = site.server(request.server).root;
    if program == root {
        return NextStep::Step(RequestStep::Find);
    }
    if !request.uri_changed {
        return NextStep::Step(RequestStep::Access);
    }
    if !request.spend_redirect() {
        let uri = &request.uri;
        request.log_error(site, ctx, |out| {
            out.extend_from_slice(b"rewrite or internal redirection cycle while processing \"");
            out.extend_from_slice(uri);
            out.push(b'"');
        });
        return NextStep::Fail(500);
    }
    request.location = root;
    request.appends_uri = false;
    NextStep::Step(RequestStep::Find)
}

fn test_match(
    request: &mut Request,
    pattern: &CapturePattern,
    text: &[u8],
    program: LocationIndex,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Result<bool, RewriteOutcome> {
    let captures = request.captures.get_mut();
    let matched = captures.capture(pattern, text);
    if let Some(failure) = captures.take_failure() {
        request.log_match_failure(&failure, site, ctx);
        return Err(RewriteOutcome::Leave(NextStep::Fail(500)));
    }
    if !matched {
        captures.forget_groups();
    }
    if site.location(program).settings.rewrite_log {
        log_match(request, pattern, text, matched, site, ctx);
    }
    Ok(matched)
}

/// Begins the phase of `program`, which has instructions.
pub(crate) const fn begin_rewrite(request: &mut Request, program: LocationIndex) -> NextStep {
    // As in nginx: until a `rewrite` matches, captures of an encoded path are escaped when read.
    request.encodes_groups = true;
    request.is_straight = false;
    NextStep::Step(RequestStep::Rewrite(RewriteCursor { program, op: 0 }))
}

/// Assigns a variable.
pub(crate) fn assign(
    request: &mut Request,
    target: SetTarget,
    text: &[u8],
    site: &Site,
    ctx: &mut StepCtx<'_>,
) {
    match target {
        SetTarget::Named(slot) => request.captures.get_mut().assign(slot, text),
        SetTarget::Args => {
            request.set_args(text);
            request.is_rewritten = true;
        }
        SetTarget::LimitRate => match bolide_conf::value::size(text) {
            Some(rate) => request.limit_rate.set(Some(rate)),
            None => request.log_error(site, ctx, |out| {
                out.extend_from_slice(b"invalid $limit_rate \"");
                out.extend_from_slice(text);
                out.push(b'"');
            }),
        },
    }
}
