//! The names of Apache's modules whose directives are supported here, and the emulated version.

/// The emulated version of Apache.
pub(crate) const VERSION: [u32; 3] = [2, 4, 66];

/// Source file names without `.c`, and module identifiers.
const MODULES: [(&str, &str); 30] = [
    ("core", "core_module"),
    ("mod_so", "so_module"),
    ("http_core", "http_module"),
    ("mod_access_compat", "access_compat_module"),
    ("mod_alias", "alias_module"),
    ("mod_auth_basic", "auth_basic_module"),
    ("mod_authn_core", "authn_core_module"),
    ("mod_authn_file", "authn_file_module"),
    ("mod_authz_core", "authz_core_module"),
    ("mod_authz_groupfile", "authz_groupfile_module"),
    ("mod_authz_host", "authz_host_module"),
    ("mod_authz_user", "authz_user_module"),
    ("mod_autoindex", "autoindex_module"),
    ("mod_brotli", "brotli_module"),
    ("mod_deflate", "deflate_module"),
    ("mod_dir", "dir_module"),
    ("mod_env", "env_module"),
    ("mod_expires", "expires_module"),
    ("mod_filter", "filter_module"),
    ("mod_headers", "headers_module"),
    ("mod_mime", "mime_module"),
    ("mod_rewrite", "rewrite_module"),
    ("mod_setenvif", "setenvif_module"),
    ("mod_ssl", "ssl_module"),
    ("mod_substitute", "substitute_module"),
    ("mod_version", "version_module"),
    ("mod_php", "php_module"),
    ("mod_php5", "php5_module"),
    ("mod_php7", "php7_module"),
    ("mod_php8", "php8_module"),
];

/// Whether the module called `name` is supported. As in Apache, case matters.
pub(crate) fn is_there(name: &[u8]) -> bool {
    // Not a module of Apache: plugins test for LiteSpeed's directives this way.
    let is_litespeed = name.eq_ignore_ascii_case(b"LiteSpeed");
    is_litespeed
        || MODULES.iter().any(|(file, identifier)| {
            name.strip_suffix(b".c") == Some(file.as_bytes()) || name == identifier.as_bytes()
        })
}
