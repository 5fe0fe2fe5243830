//! The interface to php-fpm: its configuration file, its arguments, its environment; and the
//! parsing of the lines that it writes.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use bolide_conf::model::LogLevel;

use super::settle::Settled;

/// PHP settings that take effect only when php-fpm starts; a pool's section is too late.
const STARTUP_ONLY: [&str; 4] = ["opcache.", "extension", "zend_extension", "ffi.preload"];
/// Seconds that a graceful end may take before php-fpm itself gives up; our own limit is shorter.
const PATIENCE_SECONDS: u32 = 86_400;
/// The names, with a number behind, under which php-fpm gets the values of `env` and `ini`: a line
/// of its file carries neither line feeds nor, as `env`, an empty value or a `$` in front. Scripts
/// do not see them, as php-fpm clears the environment of children.
const ENV: &str = "BOLIDE_ENV_";
const INI: &str = "BOLIDE_INI_";
/// The default `PATH` of scripts.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The configuration file of one pool. `alias` is the name by which php-fpm knows its inherited
/// socket; no file exists there, because php-fpm removes it when it ends.
pub(super) fn configuration(settled: &Settled, alias: &Path) -> String {
    let pool = &settled.pool;
    let mut text = format!(
        "[global]\n\
         daemonize = no\n\
         error_log = /proc/self/fd/2\n\
         log_limit = 8192\n\
         log_buffering = no\n\
         process_control_timeout = {PATIENCE_SECONDS}\n\
         [{name}]\n\
         listen = '{alias}'\n\
         catch_workers_output = yes\n\
         decorate_workers_output = no\n\
         clear_env = yes\n\
         pm.max_children = {children}\n\
         pm.max_requests = {requests}\n\
         request_terminate_timeout = {timeout}\n",
        name = section(&pool.name),
        alias = alias.display(),
        children = settled.children,
        requests = pool.max_requests,
        timeout = pool.request_timeout.as_millis().div_ceil(1000),
    );
    let start = settled.start;
    if start == settled.children {
        text.push_str("pm = static\n");
    } else {
        let spare = (start / 2).max(1);
        let _ = write!(
            text,
            "pm = dynamic\n\
             pm.start_servers = {start}\n\
             pm.min_spare_servers = {spare}\n\
             pm.max_spare_servers = {start}\n"
        );
    }
    if let Some(account) = settled.account.as_ref().filter(|_| bolide_io::process::is_root()) {
        let _ = writeln!(text, "user = {}\ngroup = {}", account.uid, account.gid);
    }
    for (at, (name, _)) in environment(settled).iter().enumerate() {
        let _ = writeln!(text, "env['{name}'] = '${ENV}{at}'");
    }
    if let Some(memory) = memory_limit(settled) {
        // Not final: WordPress raises it while it scales a picture.
        let _ = writeln!(text, "php_value[memory_limit] = {memory}");
    }
    for (at, (name, _)) in settings(settled).iter().enumerate() {
        if !STARTUP_ONLY.iter().any(|start| name.starts_with(start)) {
            let _ = writeln!(text, "php_admin_value['{name}'] = \"${{{INI}{at}}}\"");
        }
    }
    text
}

/// The values that [`configuration`] refers to, as environment variables of the master.
pub(super) fn values(settled: &Settled) -> impl Iterator<Item = (String, OsString)> {
    let numbered = |prefix: &'static str, all: Vec<(String, OsString)>| {
        let all = all.into_iter().enumerate();
        all.map(move |(at, (_, value))| (format!("{prefix}{at}"), value))
    };
    numbered(ENV, environment(settled)).chain(numbered(INI, settings(settled)))
}

/// The name of the pool's section; php-fpm has one `global` itself.
fn section(pool: &str) -> String {
    let name = super::settle::plain(pool);
    if name.eq_ignore_ascii_case("global") { format!("{name}_") } else { name }
}

/// A file for PHP's directory of further settings.
pub(super) fn ini(settled: &Settled) -> Vec<u8> {
    let memory = memory_limit(settled).map(|bytes| format!("memory_limit = {bytes}\n"));
    let first = memory.unwrap_or_default().into_bytes();
    settings(settled).iter().fold(first, |mut text, (name, value)| {
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(b" = ");
        quote(value, &mut text);
        text.push(b'\n');
        text
    })
}

/// Settings of PHP that scripts cannot change: those of `ini`, and what other directives mean.
fn settings(settled: &Settled) -> Vec<(String, OsString)> {
    let pool = &settled.pool;
    let mut all = pool.ini.clone();
    let mut add = |name: &str, value: &Path| {
        if !pool.ini.iter().any(|(known, _)| known == name) {
            all.push((name.to_owned(), value.into()));
        }
    };
    if let Some(tmp) = &pool.tmp {
        for name in ["sys_temp_dir", "upload_tmp_dir", "session.save_path"] {
            add(name, tmp);
        }
    }
    if !pool.open_basedir.is_empty() {
        let all: Vec<_> =
            pool.open_basedir.iter().chain(&pool.tmp).map(|it| it.as_os_str()).collect();
        add("open_basedir", Path::new(&all.join(OsStr::new(":"))));
    }
    all
}

/// Variables that scripts see.
pub(super) fn environment(settled: &Settled) -> Vec<(String, OsString)> {
    let pool = &settled.pool;
    let tmp = pool.tmp.as_ref().map(|tmp| ("TMPDIR", tmp.into()));
    let path = ("PATH", PATH.into());
    let is_said = |name: &str| pool.env.iter().any(|(known, _)| known == name);
    let ours = tmp.into_iter().chain([path]).filter(|(name, _)| !is_said(name));
    let ours = ours.map(|(name, value)| (name.to_owned(), value));
    ours.chain(pool.env.iter().cloned()).collect()
}

/// PHP's memory limit from `memory`, unless `ini` sets it.
fn memory_limit(settled: &Settled) -> Option<u64> {
    let is_said = settled.pool.ini.iter().any(|(name, _)| name == "memory_limit");
    (!is_said).then_some(settled.pool.memory)
}

/// The arguments: in the foreground, logging to standard error; as root only where the operator
/// wants scripts to run as root.
pub(super) fn args(settled: &Settled, file: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["-F".into(), "-O".into(), "-y".into(), file.into()];
    if let Some(ini) = &settled.pool.ini_file {
        args.extend(["-c".into(), ini.into()]);
    }
    if settled.runs_as_root() {
        args.push("-R".into());
    }
    args
}

/// The variable by which php-fpm takes over an open socket, as it does when it re-executes itself.
pub(super) fn sockets(alias: &Path, number: i32) -> OsString {
    let mut text = alias.as_os_str().to_owned();
    text.push(format!("={number}"));
    text
}

/// Appends a value quoted for a file in PHP's ini language: `'…'` allows everything but itself, and
/// is never empty.
fn quote(value: &OsStr, out: &mut Vec<u8>) {
    for (at, part) in value.as_bytes().split(|byte| *byte == b'\'').enumerate() {
        if at > 0 {
            out.extend_from_slice(b"\"'\"");
        }
        if !part.is_empty() {
            out.push(b'\'');
            out.extend_from_slice(part);
            out.push(b'\'');
        }
    }
    if value.is_empty() {
        out.extend_from_slice(b"\"\"");
    }
}

/// The prefix of PHP's messages about a script in php-fpm's log. The web server gets the same text
/// with its request, so this copy matters only where that is too late: after
/// `fastcgi_finish_request`.
pub(super) const REPORT: &str = "NOTICE: PHP message: ";

/// A parsed line of php-fpm's or a child's standard error.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FpmLine<'a> {
    /// The pool accepts requests.
    Ready,
    /// A text for the log.
    Text(LogLevel, &'a str),
    /// Nothing to log.
    Blank,
}

/// Reads one line.
pub(super) fn line(text: &str) -> FpmLine<'_> {
    let text = text.trim();
    if text.is_empty() {
        return FpmLine::Blank;
    }
    let own = text.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let Some((level, rest)) = own.and_then(|(_, rest)| rest.split_once(": ")) else {
        return FpmLine::Text(level_of_script(text), text);
    };
    let level = match level {
        "DEBUG" => LogLevel::Debug,
        // The notices of php-fpm are its normal life: starts, stops, children replaced.
        "NOTICE" if rest == "ready to handle connections" => return FpmLine::Ready,
        "NOTICE" => LogLevel::Info,
        "WARNING" => LogLevel::Warn,
        "ERROR" => LogLevel::Error,
        "ALERT" => LogLevel::Alert,
        _ => return FpmLine::Text(level_of_script(text), text),
    };
    FpmLine::Text(level, rest)
}

/// What php-fpm says about a pool, in the words of the directives of a `php_pool`. It advises to
/// change settings that only its own configuration has.
pub(super) fn in_our_words(text: &str) -> Option<(LogLevel, String)> {
    let said = text.strip_prefix("[pool ").and_then(|rest| rest.split_once("] "))?.1;
    if let Some(rest) = said.strip_prefix("server reached pm.max_children setting (") {
        let count = rest.split(')').next().unwrap_or_default();
        let text =
            format!("all {count} children are busy, requests wait (\"children\", \"queue\")");
        return Some((LogLevel::Warn, text));
    }
    if said.starts_with("seems busy ") {
        let rest = said.split_once("), ").map_or(said, |(_, rest)| rest);
        return Some((LogLevel::Info, format!("is busy, {rest}")));
    }
    if let Some((child, rest)) = said.split_once(", script ")
        && let Some((script, rest)) = rest.split_once(" execution timed out (")
    {
        let time = rest.split(')').next().unwrap_or_default();
        let text = format!(
            "{child} took {time} for {script}, longer than \"request_timeout\", and is ended"
        );
        return Some((LogLevel::Warn, text));
    }
    None
}

/// Whether a line continues PHP's report of an uncaught error.
pub(super) fn goes_on(text: &str) -> bool {
    ["Stack trace:", "#", "thrown in ", "Next "].iter().any(|start| text.starts_with(start))
}

/// The level of a line that a script or PHP itself wrote.
fn level_of_script(text: &str) -> LogLevel {
    if text.starts_with(REPORT) {
        return LogLevel::Info;
    }
    // PHP's own lines may begin with a time in brackets.
    let said = text.split_once("] ").map_or(text, |(_, rest)| rest);
    let Some(kind) = said.strip_prefix("PHP ") else { return LogLevel::Error };
    match kind.split(':').next().unwrap_or_default() {
        "Warning" | "Core Warning" | "Compile Warning" | "User Warning" => LogLevel::Warn,
        "Notice" | "Deprecated" | "Strict Standards" => LogLevel::Notice,
        _ => LogLevel::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::{FpmLine, in_our_words, line, quote, section};
    use bolide_conf::model::LogLevel;

    fn quoted(value: &str) -> String {
        let mut out = Vec::new();
        quote(value.as_ref(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_quoted_so_that_nothing_is_interpreted() {
        assert_eq!(quoted("a \"b\" ${HOME} {}|"), "'a \"b\" ${HOME} {}|'");
        assert_eq!(quoted("it's"), "'it'\"'\"'s'");
        assert_eq!(quoted("'a''b'"), "\"'\"'a'\"'\"\"'\"'b'\"'\"");
        assert_eq!(quoted("a\nuser = 0"), "'a\nuser = 0'");
        assert_eq!(quoted(""), "\"\"");
        assert_eq!(quoted("'"), "\"'\"");
    }

    #[test]
    fn no_pool_has_the_section_of_php_fpm_itself() {
        let names = ["shop", "global", "Global", "globals"].map(section);
        assert_eq!(names, ["shop", "global_", "Global_", "globals"]);
    }

    #[test]
    fn advice_is_given_in_the_words_of_the_directives() {
        for (said, level, words) in [
            (
                "[pool x] server reached pm.max_children setting (5), consider raising it",
                LogLevel::Warn,
                "all 5 children are busy, requests wait (\"children\", \"queue\")",
            ),
            (
                "[pool x] seems busy (you may need to increase pm.start_servers, or \
                 pm.min/max_spare_servers), spawning 8 children, there are 0 idle, and 4 total \
                 children",
                LogLevel::Info,
                "is busy, spawning 8 children, there are 0 idle, and 4 total children",
            ),
            (
                "[pool x] child 7, script '/a.php' (request: \"GET /a.php\") execution timed out \
                 (1.2 sec), terminating",
                LogLevel::Warn,
                "child 7 took 1.2 sec for '/a.php' (request: \"GET /a.php\"), longer than \
                 \"request_timeout\", and is ended",
            ),
        ] {
            assert_eq!(in_our_words(said), Some((level, words.to_owned())));
        }
        assert_eq!(in_our_words("[pool x] child 7 exited with code 0"), None);
    }

    #[test]
    fn lines_have_the_level_that_their_writer_meant() {
        for (text, level, rest) in [
            (
                "[21-Nov-2026 08:54:50] WARNING: [pool x] seems busy",
                LogLevel::Warn,
                "[pool x] seems busy",
            ),
            ("[21-Nov-2026 08:54:50] ERROR: unable to bind", LogLevel::Error, "unable to bind"),
            ("[21-Nov-2026 08:54:50] ALERT: oops", LogLevel::Alert, "oops"),
            ("[21-Nov-2026 08:54:50] NOTICE: Finishing ...", LogLevel::Info, "Finishing ..."),
            ("PHP Warning:  x in y", LogLevel::Warn, "PHP Warning:  x in y"),
            ("PHP Deprecated:  x", LogLevel::Notice, "PHP Deprecated:  x"),
            ("PHP Fatal error:  x", LogLevel::Error, "PHP Fatal error:  x"),
            ("NOTICE: PHP message: PHP Fatal", LogLevel::Info, "NOTICE: PHP message: PHP Fatal"),
            ("anything: else", LogLevel::Error, "anything: else"),
            ("[x] anything: else", LogLevel::Error, "[x] anything: else"),
        ] {
            assert_eq!(line(text), FpmLine::Text(level, rest), "{text}");
        }
        let ready = "[21-Nov-2026 08:54:50] NOTICE: ready to handle connections\n";
        assert_eq!(line(ready), FpmLine::Ready);
        assert_eq!(line("  \n"), FpmLine::Blank);
    }
}
