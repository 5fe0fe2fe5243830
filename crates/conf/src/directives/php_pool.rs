//! The `php_pool` block: processes that the server itself starts and supervises.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::pass;
use super::peer::UNIX_PATH_MAX;
use super::upstream;
use crate::ast::Node;
use crate::choice::choice;
use crate::directive::{
    Args, Contexts, DirectiveSpec, Inheritance, leaf, millis, offset, own, value,
};
use crate::drafts::GroupKey;
use crate::model::{
    PeerAddress, PhpLimit, PhpPool, PhpProtocol, PhpResource, Queue, SourcePlace, UpstreamKind,
};
use crate::reader::{ConfReader, DUPLICATE, INVALID, ReadFault, ReadResult, bounded, show};
use crate::value as values;

const P: Contexts = Contexts::PHP_POOL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    leaf("php_pool", Contexts::HTTP, Args::ONE, Inheritance::Own, php_pool)
        .doc(
            "A pool of PHP processes that the server starts, monitors and restarts.",
            "php_pool main { user www-data; children auto; memory 128m; }",
        )
        .takes("NAME"),
    value("binary", P, Args::ONE, |r, node| {
        pool(r).binary = Some(PathBuf::from(OsStr::from_bytes(node.arg(0))));
        Ok(())
    })
    .doc("The program: php-fpm or `lsphp`.", "binary /usr/sbin/php-fpm8.4;")
    .takes("FILE")
    .without("the newest `php-fpm` that is installed"),
    value("user", P, Args::between(1, 2), |r, node| {
        pool(r).user = Some(show(node.arg(0)).into_owned());
        if node.args_count() == 2 {
            pool(r).group = Some(show(node.arg(1)).into_owned());
        }
        Ok(())
    })
    .doc("The user, and group, that scripts run as.", "user www-data;")
    .takes("NAME [NAME]")
    .without("the user of the workers"),
    value("group", P, Args::ONE, |r, node| {
        pool(r).group = Some(show(node.arg(0)).into_owned());
        Ok(())
    })
    .doc("The group that scripts run as.", "group www-data;")
    .takes("NAME")
    .without("the group of the user"),
    value("children", P, Args::ONE, children)
        .doc("The most child processes; `auto` derives it from memory and cores.", "children auto;")
        .takes("NUMBER | auto")
        .default("auto"),
    offset("memory", P, |r| &mut pool(r).memory)
        .doc("The memory limit of one child.", "memory 128m;"),
    value("max_requests", P, Args::ONE, |r, node| {
        pool(r).max_requests = count(node.arg(0))?;
        Ok(())
    })
    .doc(
        "The number of requests after which a child is replaced; 0 is never.",
        "max_requests 1000;",
    )
    .takes("NUMBER")
    .default("1000"),
    millis("request_timeout", P, |r| &mut pool(r).request_timeout).doc(
        "The time after which a hanging child is killed; 0 is never.",
        "request_timeout 120s;",
    ),
    value("queue", P, Args::between(1, 2), |r, node| {
        pool(r).queue = upstream::read_queue(node, QUEUE.timeout)?;
        Ok(())
    })
    .doc("The length of the queue for a child, and its timeout.", "queue 128 timeout=30s;")
    .takes("NUMBER [timeout=TIME]")
    .default("128 timeout=30s"),
    own("ini", P, Args::TWO, |r, node| {
        let setting = pair(node, "ini", &RESERVED)?;
        pool(r).ini.push(setting);
        Ok(())
    })
    .doc("A setting of PHP that scripts cannot change.", "ini upload_max_filesize 64M;")
    .takes("NAME TEXT")
    .without("none"),
    own("env", P, Args::TWO, |r, node| {
        let variable = pair(node, "env", &[])?;
        pool(r).env.push(variable);
        Ok(())
    })
    .doc("An environment variable of scripts.", "env APP_ENV production;")
    .takes("NAME TEXT")
    .without("only `PATH`"),
    value("idle", P, Args::ONE, |r, node| {
        pool(r).idle = match node.arg(0) {
            b"off" => None,
            word => match values::time(word, values::Unit::Millis) {
                Some(time) if !time.is_zero() => Some(time),
                _ => return Err(INVALID),
            },
        };
        Ok(())
    })
    .doc(
        "How long a pool without requests keeps its processes. With a time, it has none until the \
         first request starts them. `off`: it always has some.",
        "idle 60s;",
    )
    .takes("TIME | off")
    .default("off"),
    value("ini_file", P, Args::ONE, |r, node| {
        pool(r).ini_file = Some(absolute(node)?);
        Ok(())
    })
    .doc("The file that PHP reads instead of its own `php.ini`.", "ini_file /srv/shop/php.ini;")
    .takes("FILE")
    .without("PHP's own"),
    value("open_basedir", P, Args::at_least(1), |r, node| {
        for word in node.args() {
            if word.contains(&b':') || word.first() != Some(&b'/') {
                return Err(INVALID);
            }
            let path = PathBuf::from(OsStr::from_bytes(word));
            pool(r).open_basedir.push(path);
        }
        Ok(())
    })
    .doc(
        "The only directories in which PHP opens files, besides that of `tmp`.",
        "open_basedir /srv/shop;",
    )
    .takes("DIRECTORY...")
    .without("all"),
    value("tmp", P, Args::ONE, |r, node| {
        pool(r).tmp = Some(absolute(node)?);
        Ok(())
    })
    .doc(
        "The directory, of the pool's user, for temporary files, uploads and sessions.",
        "tmp /srv/shop/tmp;",
    )
    .takes("DIRECTORY")
    .without("that of the system"),
    own("rlimit", P, Args::TWO, rlimit)
        .doc(
            "A limit of each process: `as`, `core`, `fsize`, `nofile`, `nproc` or `stack`.",
            "rlimit nofile 1024;",
        )
        .takes("NAME NUMBER | SIZE | unlimited")
        .without("those of the server"),
    value("limit_memory", P, Args::ONE, |r, node| {
        let bytes = values::offset(node.arg(0)).filter(|bytes| *bytes > 0).ok_or(INVALID)?;
        limit(r, node, PhpLimit::Memory(bytes))
    })
    .doc(
        "The memory of all processes of the pool together (control groups, version 2).",
        "limit_memory 512m;",
    )
    .takes("SIZE")
    .without("none"),
    value("limit_cpu", P, Args::ONE, |r, node| {
        let word = node.arg(0).strip_suffix(b"%").ok_or(INVALID)?;
        let percent = bounded(word, 1, 100_000)?;
        limit(r, node, PhpLimit::Cpu(percent))
    })
    .doc(
        "The time that all processes of the pool may compute; `100%` is one core (control groups, \
         version 2).",
        "limit_cpu 150%;",
    )
    .takes("NUMBER%")
    .without("none"),
    value("limit_tasks", P, Args::ONE, |r, node| {
        let tasks = bounded(node.arg(0), 2, u32::MAX)?;
        limit(r, node, PhpLimit::Tasks(tasks))
    })
    .doc(
        "The processes and threads of the pool, its master included (control groups, version 2).",
        "limit_tasks 50;",
    )
    .takes("NUMBER")
    .without("none"),
    value("limit_io", P, Args::ONE, |r, node| {
        let weight = bounded(node.arg(0), 1, 10_000)?;
        limit(r, node, PhpLimit::Io(weight))
    })
    .doc(
        "The pool's share of a busy disk, where others have 100 (control groups, version 2).",
        "limit_io 50;",
    )
    .takes("NUMBER")
    .without("100"),
];

/// Words that PHP's ini language does not allow as keys.
const RESERVED: [&[u8]; 8] = [b"null", b"yes", b"no", b"true", b"false", b"on", b"off", b"none"];

/// The default queue.
const QUEUE: Queue = Queue { len: 128, timeout: Duration::from_secs(30) };

/// The pool being read.
fn pool(r: &mut ConfReader) -> &mut PhpPool {
    r.http.php_pools.last_mut().expect("rows of the block are read after the block is added")
}

/// A pool with default values.
pub(super) fn empty(name: &str, place: SourcePlace) -> PhpPool {
    PhpPool {
        name: name.into(),
        binary: None,
        protocol: PhpProtocol::FastCgi,
        user: None,
        group: None,
        children: None,
        memory: 128 << 20,
        max_requests: 1000,
        request_timeout: Duration::from_secs(120),
        queue: QUEUE,
        ini: Vec::new(),
        env: Vec::new(),
        idle: None,
        ini_file: None,
        open_basedir: Vec::new(),
        tmp: None,
        rlimits: Vec::new(),
        limits: Vec::new(),
        place,
    }
}

fn php_pool(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (name, shown) = (node.arg(0), show(node.arg(0)));
    let key = GroupKey::named(name);
    if name.is_empty() || !name.iter().all(|byte| is_name_byte(*byte)) || name[0] == b'.' {
        return Err(ReadFault::Text(format!("invalid php_pool name \"{shown}\"")));
    }
    if r.http.upstream_index.contains_key(&key) {
        return Err(ReadFault::Text(format!("duplicate upstream \"{shown}\"")));
    }
    let number = r.http.php_pools.len() as u32;
    let place = r.place(node);
    r.http.php_pools.push(empty(&shown, place.clone()));
    let scope = r.inner_scope(P);
    let _ = r.read_leaf(node, scope);
    let made = pool(r);
    made.protocol = protocol(made.binary.as_deref());
    let (children, queue) = (made.children.unwrap_or(0), made.queue);
    let timeout = made.request_timeout;
    let path = r.options.prefix.join(&r.options.runtime_dir).join(format!("php-{shown}.sock"));
    let address = format!("unix:{}", path.display());
    if path.as_os_str().len() > UNIX_PATH_MAX {
        let why = "too long path in the unix domain socket";
        return Err(ReadFault::Text(format!("{why} in upstream \"{address}\"")));
    }
    let mut group = upstream::empty(&shown, UpstreamKind::Pool(number), place);
    let path: Arc<Path> = path.into();
    let mut server = upstream::server_of(&address, vec![PeerAddress::Unix(path)]);
    server.max_conns = children;
    // There is no other server to try, so no failure makes this one unavailable.
    server.max_fails = 0;
    group.servers.push(server);
    group.queue = Some(queue);
    group.request_timeout = (!timeout.is_zero()).then_some(timeout);
    pass::add(r, key, group);
    Ok(())
}

/// A name becomes part of a file name, or a key in PHP's ini language.
const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// The protocol of a program, by its name.
fn protocol(binary: Option<&Path>) -> PhpProtocol {
    let name = binary.and_then(Path::file_name).map(OsStr::as_encoded_bytes);
    if name.is_some_and(|name| name.starts_with(b"lsphp")) {
        PhpProtocol::Lsapi
    } else {
        PhpProtocol::FastCgi
    }
}

fn count(word: &[u8]) -> Result<u32, ReadFault> {
    let number = values::number(word).ok_or(ReadFault::Value("invalid number"))?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

fn children(r: &mut ConfReader, node: &Node) -> ReadResult {
    pool(r).children = match node.arg(0) {
        b"auto" => None,
        word => match count(word)? {
            0 => return Err(INVALID),
            count => Some(count),
        },
    };
    Ok(())
}

/// A name and its value. A name is a key in PHP's ini language, a value an environment variable:
/// neither can carry everything.
fn pair(node: &Node, directive: &str, reserved: &[&[u8]]) -> Result<(String, OsString), ReadFault> {
    let (name, value) = (node.arg(0), node.arg(1));
    let is_reserved = reserved.iter().any(|word| name.eq_ignore_ascii_case(word));
    if name.is_empty() || is_reserved || !name.iter().all(|byte| is_name_byte(*byte)) {
        return Err(ReadFault::Text(format!("invalid {directive} name \"{}\"", show(name))));
    }
    if value.contains(&0) {
        return Err(INVALID);
    }
    Ok((show(name).into_owned(), OsStr::from_bytes(value).to_owned()))
}

/// A path that does not depend on the directory of the server.
fn absolute(node: &Node) -> Result<PathBuf, ReadFault> {
    let path = PathBuf::from(OsStr::from_bytes(node.arg(0)));
    if path.is_absolute() { Ok(path) } else { Err(INVALID) }
}

fn limit(r: &mut ConfReader, node: &Node, limit: PhpLimit) -> ReadResult {
    let place = r.place(node);
    pool(r).limits.push((limit, place));
    Ok(())
}

fn rlimit(r: &mut ConfReader, node: &Node) -> ReadResult {
    use PhpResource::{AddressSpace, Core, FileSize, Files, Processes, Stack};
    let names = [
        ("as", AddressSpace),
        ("core", Core),
        ("fsize", FileSize),
        ("nofile", Files),
        ("nproc", Processes),
        ("stack", Stack),
    ];
    let resource = choice(node.arg(0), &names)?;
    let most = match (node.arg(1), resource) {
        (b"unlimited", _) => None,
        (word, Files | Processes) => Some(u64::from(count(word)?)),
        (word, _) => Some(values::offset(word).ok_or(INVALID)?),
    };
    if pool(r).rlimits.iter().any(|(known, _)| *known == resource) {
        return Err(DUPLICATE);
    }
    pool(r).rlimits.push((resource, most));
    Ok(())
}
