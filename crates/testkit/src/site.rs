//! Temporary directories, and the small site that tests serve by default.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// The modification time of every file of the site: Tue, 14 Nov 2023 22:13:20 GMT.
pub const MTIME: u64 = 1_700_000_000;
/// [`MTIME`] as an HTTP date.
pub const LAST_MODIFIED: &str = "Tue, 14 Nov 2023 22:13:20 GMT";
/// The content of `/hello.txt`.
pub const HELLO: &[u8] = b"hello, bolide\n";
/// nginx's entity tag of `/hello.txt`.
pub const HELLO_ETAG: &str = "\"6553f100-e\"";
/// Size of `/big.bin`.
pub const BIG: usize = 1_000_000;

/// A new empty directory that no other test has; it is removed with the value.
pub struct TempDir(PathBuf);

impl TempDir {
    /// Creates it.
    ///
    /// # Panics It cannot be created.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a default value that makes a directory is odd")]
    pub fn new() -> Self {
        Self(temp_dir())
    }
}

impl std::ops::Deref for TempDir {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A new empty directory that every user can read, and that stays.
///
/// # Panics It cannot be created.
#[must_use]
pub fn temp_dir() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("bolide-test-{}-{n}", std::process::id()));
        if fs::create_dir(&dir).is_ok() {
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
            return dir;
        }
    }
}

/// Writes a file with the time [`MTIME`], and creates the directories above it.
///
/// # Panics It cannot be written.
pub fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    touch(path, MTIME);
}

/// Sets a file's modification time, in seconds since 1970.
///
/// # Panics The file does not exist.
pub fn touch(path: &Path, mtime: u64) {
    let when = SystemTime::UNIX_EPOCH + Duration::from_secs(mtime);
    let file = File::options().append(true).open(path).unwrap();
    file.set_times(FileTimes::new().set_modified(when)).unwrap();
}

/// `len` incompressible bytes, which depend on `seed` only.
#[must_use]
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut x = seed | 1;
    let mut noise = Vec::with_capacity(len + 8);
    while noise.len() < len {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        noise.extend(x.to_le_bytes());
    }
    noise.truncate(len);
    noise
}

/// A page of about 10 KB that compresses well.
#[must_use]
pub fn page() -> String {
    let mut page = String::from("<!DOCTYPE html>\n<title>page</title>\n");
    for n in 0..250 {
        page.push_str(&format!("<p>This is paragraph {n} of the page.</p>\n"));
    }
    page
}

/// Fills `www` with the site that [`crate::TestServer`] serves.
///
/// # Panics A file cannot be written.
pub fn fill(www: &Path) {
    let put = |name: &str, content: &[u8]| write(&www.join(name), content);
    put("index.html", b"<!DOCTYPE html>\n<title>index</title>\n<p>It works.</p>\n");
    put("hello.txt", HELLO);
    put("big.bin", &noise(BIG, 7));
    put("page.html", page().as_bytes());
    put("style.css", "body { color: black }\n".repeat(100).as_bytes());
    put("photo.jpg", &noise(1024, 9));
    put("empty.txt", b"");
    put("noext", b"no extension\n");
    put("with space.txt", b"space\n");
    put("dir/index.html", b"<p>dir</p>\n");
    put("dir/file.txt", b"file\n");
    put("list/a.txt", b"a\n");
    put("list/b <b>.txt", b"b\n");
    put("list/sub/c.txt", b"c\n");
    put("bare/keep.txt", b"keep\n");
    put("pre.txt", "plain text, plain text\n".repeat(60).as_bytes());
    // Marks instead of real codings: tests need only see which file was sent.
    put("pre.txt.gz", b"\x1f\x8b-the-gzip-file");
    put("pre.txt.br", b"-the-brotli-file");
    put("pre.txt.zst", b"\x28\xb5\x2f\xfd-the-zstd-file");
    symlink("hello.txt", www.join("link.txt")).unwrap();
    symlink("dir", www.join("linkdir")).unwrap();
    symlink("nowhere", www.join("dangling")).unwrap();
}
