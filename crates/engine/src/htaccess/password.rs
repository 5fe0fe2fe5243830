//! Passwords of `AuthUserFile`, and groups of `AuthGroupFile`.

use bolide_base::errno::{EFBIG, EISDIR};
use bolide_conf::model::LogLevel;
use bolide_files::{FileKind, Known, OpenFailure, ProbePolicy, Want};
use bolide_htaccess::AuthSetup;
use bytes::Bytes;

use crate::answer::Answer;
use crate::content::search::FileSearch;
use crate::credentials::push_basic;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{NextStep, RequestStep};
use crate::phase::auth::hash_of;
use crate::phase::checks::AccessChecks;
use crate::request::Request;
use crate::site::Site;
use bolide_password::PasswordCheck;

impl AccessChecks {
    /// The user with the right password.
    ///
    /// # Errors
    ///
    /// The next step, if there is none or something has to be waited for.
    pub(super) fn htaccess_user(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        search: &mut FileSearch,
        setup: &AuthSetup<'_>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Result<Vec<u8>, NextStep> {
        let mut user = Vec::new();
        let Some(colon) = push_basic(&request.head().fields, &mut user) else {
            return Err(challenge(answer, setup));
        };
        let password = user.split_off(colon + 1);
        user.truncate(colon);
        debug_assert!(!user.contains(&b':'), "a user's name has no colon (RFC 7617 §2)");
        let Some(user_file) = setup.user_file else {
            log_user(request, &user, b"AuthUserFile is not specified", site, ctx);
            return Err(NextStep::Fail(500));
        };
        let content = search.htaccess_secret(request, user_file, site, ctx)?;
        let Some(hash) = hash_of(&content, &user) else {
            log_user(request, &user, b"not found", site, ctx);
            return Err(challenge(answer, setup));
        };
        // A password file of Apache has no plain passwords.
        if hash.starts_with(b"{PLAIN}") {
            log_user(request, &user, b"password mismatch", site, ctx);
            return Err(challenge(answer, setup));
        }
        match self.password.take() {
            Some(true) => Ok(user),
            Some(false) => {
                log_user(request, &user, b"password mismatch", site, ctx);
                Err(challenge(answer, setup))
            }
            None => {
                let check = PasswordCheck::new(&password, hash);
                if check.is_excessive() {
                    log_user(request, &user, b"hash costs too much", site, ctx);
                    return Err(challenge(answer, setup));
                }
                ctx.effects.push(StepEffect::CheckPassword(Box::new(check)));
                Err(NextStep::CheckPassword(RequestStep::Htaccess))
            }
        }
    }
}

/// Requests credentials from the client (401).
pub(super) fn challenge(answer: &mut Answer, setup: &AuthSetup<'_>) -> NextStep {
    let text = &mut answer.challenge;
    text.clear();
    text.extend_from_slice(b"Basic realm=\"");
    for &byte in setup.realm {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(if byte.is_ascii_control() { b' ' } else { byte });
    }
    text.push(b'"');
    NextStep::Fail(401)
}

impl FileSearch {
    /// The content of a password or group file.
    pub(super) fn htaccess_secret(
        &mut self,
        request: &Request,
        name: &[u8],
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Result<Bytes, NextStep> {
        self.path.clear();
        // As for a file of the configuration, a relative name is relative to it.
        if name.first() != Some(&b'/')
            && let Some(http) = site.http()
        {
            self.path.extend_from_slice(&http.bases.conf);
        }
        self.path.extend_from_slice(name);
        let policy = ProbePolicy::default();
        let failure = match ctx.files.lookup(&self.path, ctx.now, &policy) {
            Known::File(file) => match file.content() {
                Some(content) => return Ok(content.clone()),
                None => OpenFailure::Other(EFBIG),
            },
            Known::Directory(_) => OpenFailure::Other(EISDIR),
            Known::Seen(meta) if meta.kind != FileKind::File => OpenFailure::Other(EISDIR),
            Known::Missing(failure) | Known::Closed(_, failure) => failure,
            Known::Seen(_) | Known::Stale | Known::Unknown => {
                let probe = ctx.files.probe(&self.path, Want::OPEN, &policy);
                ctx.effects.push(StepEffect::Probe(Box::new(probe)));
                return Err(NextStep::Probe(RequestStep::Htaccess));
            }
        };
        self.log_failure(request, LogLevel::Crit, "open()", failure, site, ctx);
        Err(NextStep::Fail(500))
    }
}

fn log_user(request: &Request, user: &[u8], words: &[u8], site: &Site, ctx: &mut StepCtx<'_>) {
    request.log_error(site, ctx, |out| {
        out.extend_from_slice(b"user \"");
        out.extend_from_slice(user);
        out.extend_from_slice(b"\": ");
        out.extend_from_slice(words);
    });
}
