//! What is given away: the Debian package by lintian and by its life on a clean Debian 12 and sid,
//! the RPM package by rpm, the unit by systemd's own judgement, the tarball by its sums.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use bolide_testkit::server::is_root;
use bolide_testkit::tools::{finish, tools_dir};
use bolide_testkit::{ToolRun, run, site, tool};

use crate::BOLIDE;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The packages of the tested binary, made by the script that makes those of a release.
static PACKAGES: LazyLock<PathBuf> = LazyLock::new(|| {
    let out = PathBuf::from(concat!(env!("CARGO_TARGET_TMPDIR"), "/packages"));
    // What is left of a run before.
    let _ = fs::remove_dir_all(&out);
    let mut command = Command::new(format!("{ROOT}/scripts/package.sh"));
    command.args(["deb", "rpm", "dist", "image", "--binary", BOLIDE, "--out"]).arg(&out);
    command.env("BOLIDE_PACKAGE_LEVEL", "1");
    let _said =
        finish("scripts/package.sh", command, std::time::Duration::from_mins(5)).succeeded();
    out
});

fn package(end: &str) -> PathBuf {
    let files = fs::read_dir(&*PACKAGES).unwrap().flatten().map(|entry| entry.path());
    let mut files = files.filter(|path| path.to_string_lossy().ends_with(end));
    files.next().unwrap_or_else(|| panic!("no package {end}"))
}

fn bash(script: &str, args: &[&str]) -> ToolRun {
    run("bash", ["-c", script, "bash"].iter().chain(args)).succeeded()
}

#[test]
fn lintian_finds_neither_errors_nor_warnings() {
    let deb = package(".deb");
    let words = ["--allow-root", "--fail-on", "error,warning", deb.to_str().unwrap()];
    let done = run("lintian", words).succeeded();
    assert!(!done.text().contains("W: ") && !done.text().contains("E: "), "{done}");
}

/// Runs a script of `tests/package` with these files. Root alone may.
fn on_machine(script: &str, files: &[PathBuf], last: &str) {
    if !is_root() {
        return;
    }
    let script = PathBuf::from(format!("{ROOT}/tests/package/{script}"));
    let done = run("bash", [&script].into_iter().chain(files)).succeeded();
    assert_eq!(done.text().lines().last(), Some(last), "{done}");
}

/// The same with a root that setup made, and a package.
fn on_debian(root: &str, script: &str, package: PathBuf, last: &str) {
    let root = tools_dir().join(root);
    assert!(root.exists() || !is_root(), "missing: {root:?} (run scripts/setup.sh test)");
    on_machine(script, &[root, package], last);
}

/// The end of the life of a Debian package.
const PURGED: &str = "apt purge leaves no process, no file and no account behind";

#[test]
fn a_package_runs_on_a_clean_debian_and_its_removal_leaves_nothing() {
    on_debian("bookworm", "in_clean_root.sh", package(".deb"), PURGED);
}

#[test]
fn the_same_package_lives_on_a_clean_debian_sid() {
    on_debian("sid-clean", "in_clean_root.sh", package(".deb"), PURGED);
}

#[test]
fn an_rpm_lives_in_a_root_with_systemds_tools() {
    let last = "rpm --erase ends the server and keeps a changed configuration";
    on_debian("bookworm", "rpm_in_root.sh", package(".rpm"), last);
}

#[test]
fn the_rpm_has_the_files_of_the_package_and_its_requirements() {
    let file = package(".rpm");
    let query = |what: &[&str]| {
        let words = ["-qp"].iter().chain(what).copied().chain([file.to_str().unwrap()]);
        run("rpm", words).succeeded().text()
    };
    let has = |text: &str, lines: &[&str]| {
        for line in lines {
            assert!(text.lines().any(|one| one == *line), "{line} in {text}");
        }
    };
    let files = query(&["--list"]);
    has(&files, &["/usr/sbin/bolide", "/usr/share/man/man8/bolide.8.gz", "/etc/bolide"]);
    has(&files, &["/usr/lib/systemd/system/bolide.service", "/usr/lib/sysusers.d/bolide.conf"]);
    // Those of the Debian package, but for what each keeps elsewhere.
    let debian =
        bash("dpkg-deb --fsys-tarfile \"$1\" | tar -t", &[package(".deb").to_str().unwrap()]);
    let debian = debian.text().replace("./", "/").replace("/lib/systemd", "/usr/lib/systemd");
    let elsewhere = ["vendor-completions", "changelog.gz", "copyright", "lintian"];
    let theirs = debian.lines().filter(|path| !path.ends_with('/'));
    for path in theirs.filter(|path| !elsewhere.iter().any(|part| path.contains(part))) {
        assert!(files.lines().any(|one| one == path), "{path} in {files}");
    }
    has(&query(&["--configfiles"]), &["/etc/bolide/bolide.conf", "/etc/logrotate.d/bolide"]);
    let needs = query(&["--requires"]);
    has(&needs, &["systemd", "/bin/sh", "libc.so.6()(64bit)"]);
    let scripts = query(&["--scripts"]);
    has(&scripts, &["systemd-sysusers bolide.conf || :", "\thand_over \"$old\""]);
    assert!(!scripts.contains('@'), "a word was left to be replaced: {scripts}");
    let words = query(&["--queryformat", "%{NAME} %{VERSION} %{LICENSE}\\n"]);
    assert_eq!(words, format!("bolide {} MIT OR Apache-2.0\n", env!("CARGO_PKG_VERSION")));
    assert!(query(&["--changelog"]).contains("- HTTP/1.1, HTTP/2 and HTTP/3"));
    let digests = run("rpm", ["--checksig", "--nosignature", file.to_str().unwrap()]);
    assert!(digests.succeeded().text().contains("digests OK"));
}

#[test]
fn systemd_starts_reloads_upgrades_watches_and_activates_the_service() {
    let last = "apt purge ends the service and takes the unit away";
    on_debian("bookworm", "below_systemd.sh", package(".deb"), last);
}

#[test]
fn an_image_serves_without_root_on_a_root_that_cannot_be_written_to() {
    let last = "bolide status is a check of health, and SIGQUIT ends it";
    on_machine("image.sh", &[package(".oci.tar")], last);
}

#[test]
fn the_unit_exposes_little_by_systemds_judgement() {
    let unit = format!("{ROOT}/packaging/systemd/bolide.service");
    let words = ["security", "--offline=true", "--no-pager", "--threshold=20", &unit];
    let done = run("systemd-analyze", words).succeeded();
    assert!(done.text().contains("Overall exposure level"), "{done}");
}

#[test]
fn the_tarball_has_its_checksum_and_its_bill_of_materials() {
    let _sums =
        bash("cd \"$1\" && sha256sum --check --strict SHA256SUMS", &[PACKAGES.to_str().unwrap()]);
    let tarball = package(".tar.gz");
    let files = bash("tar -tzf \"$1\"", &[tarball.to_str().unwrap()]).text();
    for name in ["usr/sbin/bolide", "etc/bolide/bolide.conf", "LICENSE-MIT", "man8/bolide.8.gz"] {
        assert!(files.contains(name), "{name} in {files}");
    }
    let list = fs::read_to_string(package(".cdx.json")).unwrap();
    let script = "import json, sys; bill = json.load(open(sys.argv[1])); \
                  parts = {one['name']: one for one in bill['components']}; \
                  print(bill['bomFormat'], bill['metadata']['component']['name'], \
                        *sorted(parts), sep='\\n'); \
                  assert all(one['licenses'][0]['expression'] for one in parts.values()); \
                  assert len(parts['rustls']['hashes'][0]['content']) == 64";
    let done = run(
        tool("python").to_str().unwrap(),
        ["-c", script, package(".cdx.json").to_str().unwrap()],
    );
    let names = done.succeeded().text();
    let names: Vec<&str> = names.lines().collect();
    assert_eq!(names[..2], ["CycloneDX", "bolide"]);
    // What Cargo.lock has, and the binary is built from; test tools are not in it.
    for name in ["rustls", "quinn-proto", "bolide-wire", "aws-lc-sys", "zstd"] {
        assert!(names.contains(&name) && list.contains(&format!("pkg:cargo/{name}@")), "{name}");
    }
    for name in ["proptest", "bolide-testkit", "xtask", "bolide-sim"] {
        assert!(!names.contains(&name), "{name}");
    }
}

#[test]
fn the_tarball_installs_itself_and_leaves_a_configuration_alone() {
    let dir = site::temp_dir();
    let script = "cd \"$1\" && tar -xzf \"$2\" && DESTDIR=$1/to bolide-*/install.sh \
                  && echo '# mine' >to/etc/bolide/bolide.conf && DESTDIR=$1/to bolide-*/install.sh \
                  && cat to/etc/bolide/bolide.conf && to/usr/sbin/bolide -v 2>&1 \
                  && ls to/usr/lib/systemd/system to/etc/bolide";
    let tarball = package(".tar.gz");
    let said = bash(script, &[dir.to_str().unwrap(), tarball.to_str().unwrap()]).text();
    for word in ["\n# mine\n", "bolide version", "\nbolide.service\n", "\nsites-enabled\n"] {
        assert!(said.contains(word), "{word} in {said}");
    }
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn the_same_binary_and_tree_give_the_same_package() {
    let again = site::temp_dir();
    LazyLock::force(&PACKAGES);
    let mut command = Command::new(format!("{ROOT}/scripts/package.sh"));
    command.args(["rpm", "dist", "--binary", BOLIDE, "--out"]).arg(&again);
    command.env("BOLIDE_PACKAGE_LEVEL", "1");
    let _said =
        finish("scripts/package.sh", command, std::time::Duration::from_mins(5)).succeeded();
    let sums = |dir: &std::path::Path| fs::read_to_string(dir.join("SHA256SUMS")).unwrap();
    assert_eq!(sums(&again), sums(&PACKAGES));
    let rpm = |path: PathBuf| fs::read(path).unwrap();
    let ours = package(".rpm");
    assert!(rpm(again.join(ours.file_name().unwrap())) == rpm(ours), "the RPM package is another");
    fs::remove_dir_all(&again).unwrap();
}
