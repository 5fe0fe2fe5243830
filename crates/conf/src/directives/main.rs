//! Directives of the main block: the process and its workers.

use super::modules::{self, ModuleFile};
use crate::ast::Node;
use crate::choice::chosen;
use crate::diagnostic::Diagnostic;
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, accepted, flag, list, own, seconds, value,
};
use crate::model::{CpuAffinity, LogLevel, Watchdog, Workers};
use crate::reader::{ConfReader, INVALID, ReadFault, ReadResult, show};
use crate::value::{self as values, Unit};

const M: Contexts = Contexts::MAIN;

pub(super) const TABLE: &[DirectiveSpec] = &[
    flag("daemon", M, |r| &mut r.main.daemon)
        .doc("Whether the server runs in the background.", "daemon off;"),
    flag("master_process", M, |r| &mut r.main.master_process)
        .doc("Without effect: the server has no separate master process.", "master_process on;"),
    value("user", M, Args::between(1, 2), user)
        .doc("The user, and group, that workers run as.", "user www-data;")
        .takes("NAME [NAME]")
        .without("the account `nobody`, if root starts the server"),
    value("pid", M, Args::ONE, pid)
        .doc("The file with the process ID of the running server.", "pid /run/bolide.pid;")
        .takes("FILE")
        .default("logs/nginx.pid"),
    value("lock_file", M, Args::ONE, lock_file)
        .doc("Without effect: the path of the accept lock.", "lock_file logs/lock;")
        .takes("FILE")
        .default("logs/nginx.lock"),
    value("worker_processes", M, Args::ONE, worker_processes)
        .doc("The number of workers; `auto` is one per core.", "worker_processes auto;")
        .takes("NUMBER | auto")
        .default("1"),
    value("worker_rlimit_nofile", M, Args::ONE, |r, node| {
        r.main.worker_rlimit_nofile = Some(whole(node.arg(0))?);
        Ok(())
    })
    .doc(
        "The most open files of a worker; the workers share what all of them may have.",
        "worker_rlimit_nofile 65535;",
    )
    .takes("NUMBER")
    .without("the limit inherited at start"),
    value("worker_rlimit_core", M, Args::ONE, |r, node| {
        r.main.worker_rlimit_core = Some(values::offset(node.arg(0)).ok_or(INVALID)?);
        Ok(())
    })
    .doc("The largest core file.", "worker_rlimit_core 500m;")
    .takes("BYTES")
    .without("the limit inherited at start"),
    value("worker_priority", M, Args::ONE, worker_priority)
        .doc("The scheduling priority, as with `nice`.", "worker_priority -5;")
        .takes("NUMBER (-20 to 20)")
        .default("0"),
    value("worker_cpu_affinity", M, Args::at_least(1), worker_cpu_affinity)
        .doc("The cores that workers are bound to.", "worker_cpu_affinity auto;")
        .takes("MASK… | auto [MASK]")
        .without("workers are not bound"),
    value("worker_shutdown_timeout", M, Args::ONE, |r, node| {
        let time = values::time(node.arg(0), Unit::Millis).ok_or(INVALID)?;
        r.main.worker_shutdown_timeout = Some(time);
        Ok(())
    })
    .doc(
        "How long requests may continue after the server was told to quit, or after a \
             reload replaced their configuration.",
        "worker_shutdown_timeout 30s;",
    )
    .takes("TIME")
    .without("no limit"),
    value("worker_watchdog", M, Args::ONE, |r, node| {
        let choices =
            [("log", Watchdog::Log), ("abort", Watchdog::Abort), ("restart", Watchdog::Restart)];
        r.main.worker_watchdog = chosen(node, &choices)?;
        Ok(())
    })
    .doc(
        "The reaction to a worker that hangs for five seconds: `log` writes to the error \
             log; `abort` and `restart` also end the process, by SIGABRT or with status 70, for \
             the service manager to restart it.",
        "worker_watchdog restart;",
    )
    .takes("log | abort | restart")
    .default("log"),
    seconds("reload_watch", M, |r| &mut r.main.reload_watch).doc(
        "How long a configuration is watched that a reload put in force; 0 is not at all. If \
         clearly more requests end with 5xx, of a server or of all, or clearly more handshakes \
         fail than before, the configuration before it is put back in force. \
         Both configurations need the directive.",
        "reload_watch 30s;",
    ),
    flag("reload_on_change", M, |r| &mut r.main.reload_on_change)
        .doc(
            "Whether the server reloads by itself when a file of the configuration or of a \
             certificate has changed, or a file came into or left their directories. It looks once \
             a second, and a change counts when it has lasted for two looks. A faulty \
             configuration is refused, and looked at again when it changes again.",
            "reload_on_change on;",
        )
        .default("off"),
    value("working_directory", M, Args::ONE, |r, node| {
        r.main.working_directory = Some(r.below_prefix(node.arg(0)));
        Ok(())
    })
    .doc("The working directory.", "working_directory /var/lib/bolide;")
    .takes("DIRECTORY")
    .without("the directory is unchanged"),
    list("env", M, Args::ONE, env)
        .doc("An environment variable to set; all others stay.", "env TZ=UTC;")
        .takes("NAME[=TEXT]")
        .without("all variables stay"),
    own("load_module", M, Args::ONE, load_module)
        .doc(
            "A module file, which is not loaded. Modules that are built in are at work anyway; \
             others of nginx and of Debian's packages are passed over with a notice, and their \
             directives are errors. An unknown file is an error.",
            "load_module modules/ngx_http_brotli_filter_module.so;",
        )
        .takes("FILE")
        .without("none"),
    own("thread_pool", M, Args::between(2, 3), thread_pool)
        .doc(
            "Without effect: a pool of threads for file reading.",
            "thread_pool default threads=4;",
        )
        .takes("NAME threads=NUMBER [max_queue=NUMBER]")
        .without("none; without effect"),
    accepted("pcre_jit", M, Args::ONE, DirectiveForm::Flag)
        .doc("Without effect: regular expressions are always compiled with JIT.", "pcre_jit on;"),
    accepted("timer_resolution", M, Args::ONE, DirectiveForm::Millis)
        .doc("Without effect: how often the clock is read.", "timer_resolution 100ms;"),
    accepted("debug_points", M, Args::ONE, DirectiveForm::OneOf(&["stop", "abort"]))
        .doc("Without effect: the reaction to internal errors.", "debug_points abort;"),
    value("ssl_engine", M, Args::ONE, super::tls::ignored)
        .doc("Without effect: an OpenSSL engine.", "ssl_engine dynamic;")
        .takes("NAME")
        .without("none; without effect, with a warning"),
    accepted("ssl_object_cache_inheritable", M, Args::ONE, DirectiveForm::Flag).doc(
        "Without effect: whether a reload reuses certificates that have not changed.",
        "ssl_object_cache_inheritable on;",
    ),
    accepted("quic_bpf", M, Args::ONE, DirectiveForm::Flag)
        .doc("Without effect: the kernel always routes QUIC packets.", "quic_bpf on;"),
];

/// A whole number.
fn whole(word: &[u8]) -> Result<u64, ReadFault> {
    let number = values::number(word).ok_or(ReadFault::Value("invalid number"))?;
    u64::try_from(number).map_err(|_| ReadFault::Value("invalid number"))
}

fn user(r: &mut ConfReader, node: &Node) -> ReadResult {
    if !r.options.privileged {
        let why = "makes sense only if the master process runs with super-user privileges";
        r.warn(format!("the \"user\" directive {why}, ignored"));
        return Ok(());
    }
    r.main.user = Some(show(node.arg(0)).into_owned());
    r.main.user_place = r.place(node);
    r.main.group = (node.args_count() > 1).then(|| show(node.arg(1)).into_owned());
    Ok(())
}

fn pid(r: &mut ConfReader, node: &Node) -> ReadResult {
    r.main.pid = r.below_prefix(node.arg(0));
    Ok(())
}

fn lock_file(r: &mut ConfReader, node: &Node) -> ReadResult {
    r.main.lock_file = r.below_prefix(node.arg(0));
    Ok(())
}

fn worker_processes(r: &mut ConfReader, node: &Node) -> ReadResult {
    r.main.worker_processes = match node.arg(0) {
        b"auto" => Workers::Auto,
        word => {
            let count = values::number(word).ok_or(INVALID)?;
            Workers::Count(u32::try_from(count).unwrap_or(u32::MAX))
        }
    };
    Ok(())
}

fn worker_priority(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (sign, digits) = match node.arg(0) {
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    let number = values::number(digits).and_then(|number| i32::try_from(number).ok());
    r.main.worker_priority = sign * number.ok_or(ReadFault::Value("invalid number"))?;
    Ok(())
}

fn worker_cpu_affinity(r: &mut ConfReader, node: &Node) -> ReadResult {
    let automatic = node.arg(0) == b"auto";
    if automatic && node.args_count() > 2 {
        let message = "invalid number of arguments in \"worker_cpu_affinity\" directive";
        return Err(ReadFault::Text(message.to_owned()));
    }
    let mut masks = Vec::new();
    for word in node.args().skip(usize::from(automatic)) {
        let mut mask = 0_u64;
        // From the end, as nginx finds the first wrong one.
        for (place, byte) in word.iter().rev().filter(|byte| **byte != b' ').enumerate() {
            match byte {
                b'0' => {}
                b'1' => mask |= 1_u64.checked_shl(place as u32).unwrap_or(0),
                _ => {
                    let shown = show(std::slice::from_ref(byte));
                    return Err(ReadFault::Text(format!(
                        "invalid character \"{shown}\" in \"worker_cpu_affinity\""
                    )));
                }
            }
        }
        masks.push(mask);
    }
    r.main.worker_cpu_affinity = if automatic {
        CpuAffinity::Auto(masks.first().copied())
    } else {
        CpuAffinity::Masks(masks)
    };
    Ok(())
}

fn env(r: &mut ConfReader, node: &Node) -> ReadResult {
    let text = show(node.arg(0));
    let entry = match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (text.into_owned(), None),
    };
    r.main.env.push(entry);
    Ok(())
}

/// Loads nothing: this server either implements the module, or its directives are unknown.
fn load_module(r: &mut ConfReader, node: &Node) -> ReadResult {
    if node.order > r.first_block {
        return Err(ReadFault::Value("is specified too late"));
    }
    let path = show(node.arg(0)).into_owned();
    let file = path.rsplit('/').next().unwrap_or(&path);
    let name = file.strip_suffix(".so").unwrap_or(file);
    match modules::module_file(name) {
        ModuleFile::BuiltIn => {}
        ModuleFile::Unavailable => {
            let text = format!(
                "module \"{name}\" is not available: its directives and variables are unknown"
            );
            let notice = Diagnostic::new(LogLevel::Notice, text, Some(r.place(node)));
            r.note(node.order, notice);
        }
        ModuleFile::Unknown => {
            return Err(ReadFault::Text(format!(
                "module \"{path}\" is not available: its work is not built in, and no file is \
                 loaded"
            )));
        }
    }
    name_once(r, "module", name, |name| format!("module \"{name}\" is already loaded"))
}

fn name_once(
    r: &mut ConfReader,
    kind: &'static str,
    name: &str,
    again: impl FnOnce(&str) -> String,
) -> ReadResult {
    let entry = (kind, name.to_owned());
    if r.named.contains(&entry) {
        return Err(ReadFault::Text(again(name)));
    }
    r.named.push(entry);
    Ok(())
}

fn thread_pool(r: &mut ConfReader, node: &Node) -> ReadResult {
    let name = show(node.arg(0)).into_owned();
    name_once(r, "thread pool", &name, |name| format!("duplicate thread pool \"{name}\""))?;
    let mut has_threads = false;
    for word in node.args().skip(1) {
        let wrong = |name| ReadFault::Text(format!("invalid {name} value \"{}\"", show(word)));
        if let Some(threads) = word.strip_prefix(b"threads=") {
            if matches!(values::number(threads), None | Some(0)) {
                return Err(wrong("threads"));
            }
            has_threads = true;
        } else if let Some(length) = word.strip_prefix(b"max_queue=") {
            values::number(length).ok_or_else(|| wrong("max_queue"))?;
        }
    }
    if has_threads {
        return Ok(());
    }
    Err(ReadFault::Text("\"thread_pool\" must have \"threads\" parameter".to_owned()))
}
