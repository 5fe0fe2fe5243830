//! `bolide check`: reports how this server treats each directive of an nginx configuration. It
//! opens no file that the configuration names and starts nothing; `-t` does that. It only looks for
//! `.htaccess` files that would not be read.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use bolide_conf::survey::{DirectiveSupport, Finding, Survey};

use crate::import::ConfFiles;
use crate::invocation::{CheckDetail, CheckOptions, Invocation};
use crate::messages::{err, out};
use crate::patience::Patience;
use crate::reading;
use crate::unread_files;

/// Prints the report; success only if a server would start with the configuration.
pub(crate) fn run(invocation: &Invocation, check: &CheckOptions) -> ExitCode {
    let path = match &check.file {
        None => invocation.conf.clone(),
        Some(file) => match std::path::absolute(file) {
            Ok(path) => path,
            Err(error) => {
                err(&format!("bolide: {}: {error}", file.display()));
                return ExitCode::FAILURE;
            }
        },
    };
    if survey(invocation, &path, check.detail) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the differences from nginx for the configuration of `-c`; returns whether a server would
/// start with it.
pub(crate) fn report_differences(invocation: &Invocation) -> bool {
    survey(invocation, &invocation.conf, CheckDetail::Differences)
}

fn survey(invocation: &Invocation, path: &Path, detail: CheckDetail) -> bool {
    let patience = Patience::begin(&format!("checking {}", path.display()));
    let options = reading::options_of(invocation);
    let files = match ConfFiles::open(path) {
        Ok(files) => files,
        Err(text) => {
            err(&format!("bolide: {text}"));
            return false;
        }
    };
    let survey = bolide_conf::survey::survey(&files, path, &options);
    let mut text = String::new();
    let config = bolide_conf::parse(&files, path, &options).config;
    if let Some(message) = config.as_ref().and_then(unread_files::warning) {
        let _ = writeln!(text, "{:12}  {message}", "");
    }
    text.push_str(&report(&path.display().to_string(), &survey, detail));
    drop(patience);
    out(text.as_bytes());
    survey.is_fine()
}

fn word(support: DirectiveSupport) -> &'static str {
    match support {
        DirectiveSupport::Supported => "supported",
        DirectiveSupport::Approximated(_) => "approximated",
        DirectiveSupport::Refused => "refused",
    }
}

fn report(path: &str, survey: &Survey, detail: CheckDetail) -> String {
    let mut text = String::new();
    for finding in &survey.findings {
        let is_shown =
            finding.support != DirectiveSupport::Supported || !finding.messages.is_empty();
        if is_shown || detail == CheckDetail::Everything {
            line(&mut text, finding);
        }
    }
    for message in &survey.others {
        let _ = writeln!(text, "{:12}  {message}", if message.is_fatal() { "refused" } else { "" });
    }
    let count = |word_is: &str| {
        survey.findings.iter().filter(|finding| word(finding.support) == word_is).count()
    };
    let _ = writeln!(
        text,
        "{path}: {} directives: {} supported, {} approximated, {} refused",
        survey.findings.len(),
        count("supported"),
        count("approximated"),
        count("refused"),
    );
    let guards =
        survey.findings.iter().filter(|one| one.guards && one.support == DirectiveSupport::Refused);
    match (guards.count(), survey.is_fine()) {
        (0, true) => text.push_str(
            "A server starts with it if the files and addresses in it exist: \
             check with bolide -t.\n",
        ),
        (0, false) => text.push_str("No server starts with it.\n"),
        (guards, _) => {
            let _ = writeln!(
                text,
                "No server starts with it; {guards} refused directives restrict access (marked \
                 with !): without them the server would be more open than nginx."
            );
        }
    }
    text
}

fn line(text: &mut String, finding: &Finding) {
    let mark =
        if finding.guards && finding.support == DirectiveSupport::Refused { "!" } else { " " };
    let word = word(finding.support);
    let _ = write!(text, "{word:12}{mark} {}  {}", finding.place, finding.name);
    if let DirectiveSupport::Approximated(why) = finding.support {
        let _ = write!(text, "  (no effect: {})", why.trim_start_matches("Without effect: "));
    }
    text.push('\n');
    for message in &finding.messages {
        let _ = writeln!(text, "{:16}{}", "", message.message);
        if let Some(help) = &message.help {
            let _ = writeln!(text, "{:16}{help}", "");
        }
    }
}
