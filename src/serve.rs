//! `bolide serve` and `bolide demo`: serve a directory at once, with a generated configuration.

mod account;
mod php;
mod ports;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::demo;
use crate::invocation::{Scripts, Serve, ServeCaching};

use self::ports::ServePorts;

/// A configuration for a directory, and the messages for the person who started it.
#[derive(Debug)]
pub(crate) struct ServeReady {
    pub(crate) conf: PathBuf,
    pub(crate) text: String,
    pub(crate) greeting: String,
}

/// Prepares a directory (the demonstration site by default): certificate, configuration.
///
/// # Errors
///
/// As text: the directory is missing, or the state directory is not writable.
pub(crate) fn prepare(options: &Serve) -> Result<ServeReady, Vec<String>> {
    let state = state_directory();
    let failed = |error: std::io::Error| vec![format!("{}: {error}", state.display())];
    private_directory(&state).map_err(failed)?;
    let root = match &options.root {
        Some(root) => std::fs::canonicalize(root)
            .map_err(|error| vec![format!("{}: {error}", root.display())])?,
        None => demo::unpack(&state).map_err(failed)?,
    };
    certificate(&state)?;
    let (ports, said) = ports::choose(options);
    let mut ready = match options.scripts {
        Scripts::Php => prepare_php(options, &root, &ports, &state),
        Scripts::None => prepare_files(options, &root, &ports, &state),
    };
    ready.greeting.insert_str(0, &said);
    Ok(ready)
}

fn prepare_files(options: &Serve, root: &Path, ports: &ServePorts, state: &Path) -> ServeReady {
    let (http, https, host) = (ports.http, ports.https, ports.host());
    // The demonstration lists its files; another directory does not.
    let listing = if options.root.is_none() { "location /files/ { autoindex on; }\n" } else { "" };
    let account = account::of_files(root);
    let text = configuration((root, state), ports, account.as_deref(), listing);
    let greeting = format!(
        "Bolide {version} serves {root}, {audience}{whose}\n\
         \n\
         \x20 http://{host}:{http}/    https://{host}:{https}/   (Ctrl-C stops)\n\
         \n\
         \x20 curl -i http://{host}:{http}/\n\
         \x20 curl -ik --http1.1 https://{host}:{https}/\n\
         \x20 curl -ik --http2 https://{host}:{https}/\n\
         \x20 curl -ik --http3-only https://{host}:{https}/\n\
         \n\
         The certificate is self-signed: {cert}\n",
        audience = ports.audience(),
        whose = account::say(root, account.as_deref()),
        version = env!("CARGO_PKG_VERSION"),
        root = root.display(),
        cert = state.join("localhost.pem").display(),
    );
    ServeReady { conf: state.join("serve.conf"), text, greeting }
}

fn prepare_php(options: &Serve, given: &Path, ports: &ServePorts, state: &Path) -> ServeReady {
    let root = php::document_root(given);
    let (http, https, host) = (ports.http, ports.https, ports.host());
    let (version, audience) = (env!("CARGO_PKG_VERSION"), ports.audience());
    let cached = match options.caching {
        ServeCaching::Off => "",
        ServeCaching::PageCache => "--page-cache ",
    };
    let mut greeting = format!("Bolide {version} serves {} with PHP, {audience}", root.display());
    if root != given {
        greeting.push_str(&format!(", the public directory of {}", given.display()));
    }
    let account = account::of_scripts(&root);
    greeting.push_str(&account::say(&root, account.as_deref()));
    if account.is_some() {
        greeting.push_str(", and scripts do, too");
    }
    greeting.push_str(&format!(
        "\n\n\
         \x20 http://{host}:{http}/    https://{host}:{https}/   (Ctrl-C stops)\n\
         \n\
         The certificate is self-signed: {cert}\n\
         A configuration to grow from: \
         bolide serve --php {cached}--print-config {given} > bolide.conf\n",
        cert = state.join("localhost.pem").display(),
        given = given.display(),
    ));
    let kept = (account.as_deref(), options.caching);
    let text = php::configuration(&root, ports, kept, state);
    ServeReady { conf: state.join("serve.conf"), text, greeting }
}

/// Where the certificate and the generated configuration live.
#[expect(clippy::disallowed_methods, reason = "it is no test's directory")]
fn state_directory() -> PathBuf {
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from);
    // Root's home is closed to the account that serves this directory.
    if bolide_io::process::is_root() && from("XDG_STATE_HOME").is_none() {
        return PathBuf::from("/var/lib/bolide");
    }
    let home = || from("HOME").map(|home| home.join(".local/state"));
    match from("XDG_STATE_HOME").or_else(home) {
        Some(below) => below.join("bolide"),
        None => {
            std::env::temp_dir().join(format!("bolide-state-{}", bolide_io::process::own_ids().0))
        }
    }
}

/// Makes a directory that only we write in; one that other users may have made is refused. Workers
/// of another account pass through it to the bodies that they store below.
fn private_directory(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(path)?;
    let found = std::fs::symlink_metadata(path)?;
    let is_ours = found.uid() == bolide_io::process::own_ids().0 && found.mode() & 0o022 == 0;
    // A link to a directory elsewhere is fine in a home, where no other user makes one.
    if is_ours || found.is_symlink() && found.uid() == bolide_io::process::own_ids().0 {
        return Ok(());
    }
    Err(std::io::Error::other("the directory belongs to others, or they may write in it"))
}

/// Makes a certificate once, so that browsers that trust it keep doing so.
fn certificate(state: &Path) -> Result<(), Vec<String>> {
    let (chain, key) = (state.join("localhost.pem"), state.join("localhost.key"));
    if chain.exists() && key.exists() {
        return Ok(());
    }
    let names = ["localhost", "127.0.0.1", "::1"];
    let (chain_pem, key_pem) = bolide_tls::self_signed(&names).map_err(|text| vec![text])?;
    let failed = |error: std::io::Error| vec![format!("{}: {error}", state.display())];
    std::fs::write(&chain, chain_pem).map_err(failed)?;
    let mut options = std::fs::File::options();
    // Never readable to others, not even at first.
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.write(true).create(true).truncate(true).open(&key).map_err(failed)?;
    file.write_all(key_pem.as_bytes()).map_err(failed)
}

/// Names that begin with a dot, at any depth; `/.well-known/` is public.
const HIDDEN: &str = r"(?s)^(?:.+/\.|/\.(?!well-known/))";

/// Scripts that another server would run: as files they are sources, with passwords in them.
/// Editors' copies and compressed forms are no better.
const SCRIPTS: &str = concat!(
    r"\.(?:php\d*|phps|pht|phtml|phar|inc|f?cgi|aspx?|ascx|jspx?|cfm)",
    r"(?:~|\.(?:bak|old|orig|save|sw[op]|dist|gz|br|zst))?$",
);

fn configuration(
    (root, state): (&Path, &Path),
    ports: &ServePorts,
    account: Option<&str>,
    listing: &str,
) -> String {
    let types = include_str!("../conf/mime.types");
    let (cert, key) = (state.join("localhost.pem"), state.join("localhost.key"));
    let (root, cert, key) = (php::quoted(root), php::quoted(&cert), php::quoted(&key));
    let user = account.map(|name| format!("user {name};\n")).unwrap_or_default();
    let listens = ports.directives().join("\n");
    format!(
        "{user}worker_processes auto;\n\
         error_log stderr warn;\n\
         events {{ worker_connections 16384; }}\n\
         http {{\n\
         {types}\n\
         default_type application/octet-stream;\n\
         access_log off;\n\
         sendfile on;\n\
         charset utf-8;\n\
         gzip on; gzip_static on; gzip_vary on;\n\
         brotli on; brotli_static on;\n\
         zstd on; zstd_static on;\n\
         ssl_certificate {cert};\n\
         ssl_certificate_key {key};\n\
         server {{\n\
         {listens}\n\
         http2 on;\n\
         server_name localhost;\n\
         root {root};\n\
         disable_symlinks if_not_owner from=$document_root;\n\
         index index.html;\n\
         error_page 404 /404.html;\n\
         location / {{ try_files $uri $uri/ =404; }}\n\
         {listing}\
         location ~ \"{HIDDEN}\" {{ return 404; }}\n\
         location ~* \"{SCRIPTS}\" {{ return 404; }}\n\
         }}\n\
         }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::private_directory;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    #[test]
    fn a_directory_in_which_others_may_write_is_refused() {
        let base = bolide_testkit::site::temp_dir();
        let (ours, open, foreign) = (base.join("a/b"), base.join("open"), base.join("foreign"));
        assert!(private_directory(&ours).is_ok() && private_directory(&ours).is_ok());
        assert_eq!(fs::metadata(&ours).unwrap().permissions().mode() & 0o022, 0);
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(private_directory(&open).is_err());
        fs::create_dir(&foreign).unwrap();
        if bolide_io::process::is_root() {
            chown(&foreign, Some(65_534), None).unwrap();
            assert!(private_directory(&foreign).is_err());
        }
    }
}
