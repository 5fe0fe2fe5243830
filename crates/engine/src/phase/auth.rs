//! `auth_basic` and `auth_basic_user_file` (RFC 7617).
//!
//! The table of open files reads the password file; the background thread checks slow hashes.

use bolide_base::errno::EISDIR;
use bolide_conf::model::LogLevel;
use bolide_files::{Known, OpenFailure, Want};
use bytes::Bytes;

use crate::answer::Answer;
use crate::content::search::FileSearch;
use crate::credentials::push_basic;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{NextStep, RequestStep};
use crate::log_lines;
use crate::phase::checks::AccessChecks;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;
use bolide_password::PasswordCheck;

/// The result of a password check.
pub(super) enum AuthAnswer {
    /// No password is required.
    NotAsked,
    /// The password is right.
    Passed,
    /// It is absent, wrong, or cannot be checked: this status.
    Refused(u16),
    /// It is being checked.
    Wait(NextStep),
}

impl AccessChecks {
    /// Checks the password, if the location requires one.
    pub(super) fn authenticate(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        search: &mut FileSearch,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> AuthAnswer {
        let settings = &site.location(request.location).settings;
        let (Some(realm), Some(file)) = (&settings.auth_basic, &settings.auth_basic_user_file)
        else {
            return AuthAnswer::NotAsked;
        };
        let mut text = std::mem::take(&mut answer.scratch);
        text.clear();
        let scope = VariableScope::new(request, answer, site, ctx);
        scope.expand(realm, &mut text);
        let is_off = text == b"off";
        let credentials = if is_off { None } else { credentials(request) };
        let outcome = match &credentials {
            _ if is_off => AuthAnswer::NotAsked,
            None => {
                log_lines::error(request, site, ctx, LogLevel::Info, |out| {
                    out.extend_from_slice(
                        b"no user/password was provided for basic authentication",
                    );
                });
                AuthAnswer::Refused(401)
            }
            Some((user, password)) => {
                let mut path = std::mem::take(&mut search.path);
                path.clear();
                scope.push_file(file, |bases| &bases.conf, &mut path);
                search.path = path;
                self.check_user(request, search, user, password, site, ctx)
            }
        };
        if matches!(outcome, AuthAnswer::Refused(401)) {
            answer.challenge.clear();
            answer.challenge.extend_from_slice(b"Basic realm=\"");
            answer.challenge.extend_from_slice(&text);
            answer.challenge.push(b'"');
        }
        answer.scratch = text;
        outcome
    }

    fn check_user(
        &mut self,
        request: &Request,
        search: &FileSearch,
        user: &[u8],
        password: &[u8],
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> AuthAnswer {
        let content = match self.user_file(request, search, site, ctx) {
            Ok(content) => content,
            Err(outcome) => {
                if matches!(outcome, AuthAnswer::Refused(_)) {
                    self.password = None;
                }
                return outcome;
            }
        };
        let Some(hash) = hash_of(&content, user) else {
            self.log_user(request, search, user, b"\" was not found in \"", site, ctx);
            return AuthAnswer::Refused(401);
        };
        match self.password.take() {
            Some(true) => AuthAnswer::Passed,
            Some(false) => {
                self.log_user(request, search, user, b"\": password mismatch", site, ctx);
                AuthAnswer::Refused(401)
            }
            None => {
                let check = PasswordCheck::new(password, hash);
                if check.is_excessive() {
                    self.log_user(request, search, user, b"\": hash costs too much", site, ctx);
                    return AuthAnswer::Refused(401);
                }
                ctx.effects.push(StepEffect::CheckPassword(Box::new(check)));
                AuthAnswer::Wait(NextStep::CheckPassword(RequestStep::Access))
            }
        }
    }

    /// The content of the file at `self.search.path`.
    fn user_file(
        &self,
        request: &Request,
        search: &FileSearch,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Result<Bytes, AuthAnswer> {
        let policy = bolide_files::ProbePolicy::default();
        let failure = match ctx.files.lookup(&search.path, ctx.now, &policy) {
            Known::File(file) => match file.content() {
                Some(content) => return Ok(content.clone()),
                None => {
                    let path = &search.path;
                    log_lines::error(request, site, ctx, LogLevel::Crit, |out| {
                        out.push(b'"');
                        out.extend_from_slice(path);
                        out.extend_from_slice(b"\" is too large for a file of passwords");
                    });
                    return Err(AuthAnswer::Refused(500));
                }
            },
            Known::Directory(_) | Known::Seen(_) => {
                search.log_failure(
                    request,
                    LogLevel::Crit,
                    "pread()",
                    OpenFailure::Other(EISDIR),
                    site,
                    ctx,
                );
                return Err(AuthAnswer::Refused(500));
            }
            Known::Missing(failure) | Known::Closed(_, failure) => failure,
            Known::Stale | Known::Unknown => {
                let probe = ctx.files.probe(&search.path, Want::OPEN, &policy);
                ctx.effects.push(StepEffect::Probe(Box::new(probe)));
                return Err(AuthAnswer::Wait(NextStep::Probe(RequestStep::Access)));
            }
        };
        let is_absent = failure == OpenFailure::NotFound;
        let level = if is_absent { LogLevel::Error } else { LogLevel::Crit };
        search.log_failure(request, level, "open()", failure, site, ctx);
        Err(AuthAnswer::Refused(if is_absent { 403 } else { 500 }))
    }

    fn log_user(
        &self,
        request: &Request,
        search: &FileSearch,
        user: &[u8],
        words: &[u8],
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) {
        let path = &search.path;
        request.log_error(site, ctx, |out| {
            out.extend_from_slice(b"user \"");
            out.extend_from_slice(user);
            out.extend_from_slice(words);
            if words.ends_with(b"in \"") {
                out.extend_from_slice(path);
                out.push(b'"');
            }
        });
    }
}

/// The hash in the first line for `user`, up to the next colon.
pub(crate) fn hash_of<'a>(content: &'a [u8], user: &[u8]) -> Option<&'a [u8]> {
    content.split(|byte| *byte == b'\n').find_map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let rest = line.strip_prefix(user)?.strip_prefix(b":")?;
        if line.first() == Some(&b'#') {
            return None;
        }
        Some(rest.split(|byte| *byte == b':').next().unwrap_or_default())
    })
}

/// Name and password from the client.
fn credentials(request: &Request) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut user = Vec::new();
    let colon = push_basic(&request.head().fields, &mut user)?;
    let password = user.split_off(colon + 1);
    debug_assert!(!user[..colon].contains(&b':'), "a user's name has no colon (RFC 7617 §2)");
    user.truncate(colon);
    Some((user, password))
}

#[cfg(test)]
mod tests {
    use super::hash_of;

    #[test]
    fn the_first_line_of_a_user_counts_up_to_its_second_colon() {
        let file = b"# a:no\n#b:no\nalice:{PLAIN}x:Alice\nbob:y\r\nalice:z\nal:q";
        assert_eq!(hash_of(file, b"alice"), Some(&b"{PLAIN}x"[..]));
        assert_eq!(hash_of(file, b"bob"), Some(&b"y"[..]));
        assert_eq!(hash_of(file, b"al"), Some(&b"q"[..]));
        assert_eq!(hash_of(file, b"#b"), None);
        assert_eq!(hash_of(file, b"carol"), None);
    }
}
