//! A WordPress for tests: a writable copy of Debian's package with its `wp-config.php` and its
//! database, not installed yet.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::mariadb::MariaDb;
use crate::site;
use crate::tools::run;

const PACKAGE: &str = "/usr/share/wordpress";

/// The document root. Dropping it removes the directory.
pub struct WordPress {
    dir: PathBuf,
}

impl WordPress {
    /// Copies WordPress and creates an empty database for it.
    ///
    /// # Panics Debian's package is missing.
    #[must_use]
    pub fn new(db: &MariaDb) -> Self {
        assert!(Path::new(PACKAGE).is_dir(), "missing: wordpress (run scripts/setup.sh test)");
        let dir = site::temp_dir();
        // Links lead to files of other packages, so they are followed; .htaccess is for another
        // server.
        let copy = Command::new("cp")
            .args(["-rL", "--", &format!("{PACKAGE}/."), dir.to_str().unwrap()])
            .stderr(Stdio::null())
            .status();
        assert!(copy.is_ok_and(|status| status.success()), "cp {PACKAGE}");
        fs::create_dir_all(dir.join("wp-content/uploads")).unwrap();
        db.sql("drop database if exists wordpress; create database wordpress");
        fs::write(dir.join("wp-config.php"), config(db)).unwrap();
        Self { dir }
    }

    /// The document root.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The version of WordPress.
    #[must_use]
    pub fn version(&self) -> String {
        let script = "include $argv[1]; echo $wp_version;";
        let file = self.dir.join("wp-includes/version.php");
        run("php", ["-r", script, file.to_str().unwrap()]).succeeded().text()
    }
}

impl Drop for WordPress {
    fn drop(&mut self) {
        if std::env::var_os("BOLIDE_TEST_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Loopback requests of its own (wp-cron) are allowed, other requests are not. A run of wp-cron
/// that does not begin within the lock's time is overtaken by the next and ends: five seconds
/// leave it time on a busy machine.
fn config(db: &MariaDb) -> String {
    let mut text = format!(
        "<?php\n\
         define('DB_NAME', 'wordpress');\ndefine('DB_USER', 'root');\n\
         define('DB_PASSWORD', '');\ndefine('DB_HOST', 'localhost:{}');\n\
         define('DB_CHARSET', 'utf8mb4');\ndefine('DB_COLLATE', '');\n\
         define('WP_HTTP_BLOCK_EXTERNAL', true);\ndefine('AUTOMATIC_UPDATER_DISABLED', true);\n\
         define('FS_METHOD', 'direct');\ndefine('WP_CRON_LOCK_TIMEOUT', 5);\n\
         define('WP_DEBUG', true);\ndefine('WP_DEBUG_DISPLAY', false);\n\
         define('WP_DEBUG_LOG', '{}');\n",
        db.socket().display(),
        db.socket().with_file_name("wordpress.log").display()
    );
    for name in ["AUTH", "SECURE_AUTH", "LOGGED_IN", "NONCE"] {
        text.push_str(&format!("define('{name}_KEY', 'key of {name}');\n"));
        text.push_str(&format!("define('{name}_SALT', 'salt of {name}');\n"));
    }
    text.push_str(
        "$table_prefix = 'wp_';\n\
         if (!defined('ABSPATH')) { define('ABSPATH', __DIR__ . '/'); }\n\
         require_once ABSPATH . 'wp-settings.php';\n",
    );
    text
}
