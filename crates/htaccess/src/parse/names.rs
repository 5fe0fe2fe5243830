//! Directives by name: supported ones, and those of the server configuration only.

use crate::overrides::OverrideClass;

/// The kind of a directive name.
pub(super) enum Directive {
    /// A supported directive of `.htaccess` files.
    Known(DirectiveName),
    /// A directive of the server configuration.
    OfServer,
    Unknown,
}

/// Supported directives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectiveName {
    AcceptPathInfo,
    AddCharset,
    AddDefaultCharset,
    AddEncoding,
    AddHandler,
    AddLanguage,
    AddOutputFilter,
    AddOutputFilterByType,
    AddType,
    Allow,
    AuthBasicProvider,
    AuthGroupFile,
    AuthMerging,
    AuthRealm,
    AuthType,
    AuthUserFile,
    BrowserMatch,
    BrowserMatchNoCase,
    CacheDisable,
    CacheEnable,
    CacheEngine,
    CacheKeyModify,
    CacheLookup,
    CacheMaxExpire,
    CacheStaleAge,
    /// A directive of LiteSpeed's cache that has no effect in a file.
    CacheUnused,
    CgiPassAuth,
    DefaultLanguage,
    Deny,
    DirectoryIndex,
    DirectorySlash,
    ErrorDocument,
    ExpiresActive,
    ExpiresByType,
    ExpiresDefault,
    FallbackResource,
    FileEtag,
    ForceType,
    Header,
    IndexIgnore,
    LimitRequestBody,
    LiteMage,
    Options,
    Order,
    PhpFlag,
    PhpValue,
    Redirect,
    RedirectMatch,
    RedirectPermanent,
    RedirectTemp,
    RemoveCharset,
    RemoveEncoding,
    RemoveHandler,
    RemoveLanguage,
    RemoveOutputFilter,
    RemoveType,
    RequestHeader,
    Require,
    RewriteBase,
    RewriteCond,
    RewriteEngine,
    RewriteOptions,
    RewriteRule,
    Satisfy,
    ServerSignature,
    SetEnv,
    SetEnvIf,
    SetEnvIfExpr,
    SetEnvIfNoCase,
    SetHandler,
    SetOutputFilter,
    SslOptions,
    SslRequire,
    SslRequireSsl,
    SslVerifyClient,
    Substitute,
    SubstituteInheritBefore,
    SubstituteMaxLineLength,
    UnsetEnv,
}

use DirectiveName as N;

const NAMES: [(&str, DirectiveName); 87] = [
    ("acceptpathinfo", N::AcceptPathInfo),
    ("addcharset", N::AddCharset),
    ("adddefaultcharset", N::AddDefaultCharset),
    ("addencoding", N::AddEncoding),
    ("addhandler", N::AddHandler),
    ("addlanguage", N::AddLanguage),
    ("addoutputfilter", N::AddOutputFilter),
    ("addoutputfilterbytype", N::AddOutputFilterByType),
    ("addtype", N::AddType),
    ("allow", N::Allow),
    ("authbasicprovider", N::AuthBasicProvider),
    ("authgroupfile", N::AuthGroupFile),
    ("authmerging", N::AuthMerging),
    ("authname", N::AuthRealm),
    ("authtype", N::AuthType),
    ("authuserfile", N::AuthUserFile),
    ("browsermatch", N::BrowserMatch),
    ("browsermatchnocase", N::BrowserMatchNoCase),
    ("cachedefaultexpire", N::CacheUnused),
    ("cachedisable", N::CacheDisable),
    ("cacheenable", N::CacheEnable),
    ("cacheengine", N::CacheEngine),
    ("cacheignorecachecontrol", N::CacheUnused),
    ("cacheignorenolastmod", N::CacheUnused),
    ("cachekeymodify", N::CacheKeyModify),
    ("cachelastmodifiedfactor", N::CacheUnused),
    ("cachelookup", N::CacheLookup),
    ("cachemaxexpire", N::CacheMaxExpire),
    ("cacheminexpire", N::CacheUnused),
    ("cacheroot", N::CacheUnused),
    ("cachestaleage", N::CacheStaleAge),
    ("cachestoreexpired", N::CacheUnused),
    ("cachestorenostore", N::CacheUnused),
    ("cachestoreprivate", N::CacheUnused),
    ("cgipassauth", N::CgiPassAuth),
    ("defaultlanguage", N::DefaultLanguage),
    ("deny", N::Deny),
    ("directoryindex", N::DirectoryIndex),
    ("directoryslash", N::DirectorySlash),
    ("errordocument", N::ErrorDocument),
    ("expiresactive", N::ExpiresActive),
    ("expiresbytype", N::ExpiresByType),
    ("expiresdefault", N::ExpiresDefault),
    ("fallbackresource", N::FallbackResource),
    ("fileetag", N::FileEtag),
    ("forcetype", N::ForceType),
    ("header", N::Header),
    ("indexignore", N::IndexIgnore),
    ("limitrequestbody", N::LimitRequestBody),
    ("litemage", N::LiteMage),
    ("options", N::Options),
    ("order", N::Order),
    ("php_flag", N::PhpFlag),
    ("php_value", N::PhpValue),
    ("redirect", N::Redirect),
    ("redirectmatch", N::RedirectMatch),
    ("redirectpermanent", N::RedirectPermanent),
    ("redirecttemp", N::RedirectTemp),
    ("removecharset", N::RemoveCharset),
    ("removeencoding", N::RemoveEncoding),
    ("removehandler", N::RemoveHandler),
    ("removelanguage", N::RemoveLanguage),
    ("removeoutputfilter", N::RemoveOutputFilter),
    ("removetype", N::RemoveType),
    ("requestheader", N::RequestHeader),
    ("require", N::Require),
    ("rewritebase", N::RewriteBase),
    ("rewritecond", N::RewriteCond),
    ("rewriteengine", N::RewriteEngine),
    ("rewriteoptions", N::RewriteOptions),
    ("rewriterule", N::RewriteRule),
    ("satisfy", N::Satisfy),
    ("serversignature", N::ServerSignature),
    ("setenv", N::SetEnv),
    ("setenvif", N::SetEnvIf),
    ("setenvifexpr", N::SetEnvIfExpr),
    ("setenvifnocase", N::SetEnvIfNoCase),
    ("sethandler", N::SetHandler),
    ("setoutputfilter", N::SetOutputFilter),
    ("ssloptions", N::SslOptions),
    ("sslrequire", N::SslRequire),
    ("sslrequiressl", N::SslRequireSsl),
    ("sslverifyclient", N::SslVerifyClient),
    ("substitute", N::Substitute),
    ("substituteinheritbefore", N::SubstituteInheritBefore),
    ("substitutemaxlinelength", N::SubstituteMaxLineLength),
    ("unsetenv", N::UnsetEnv),
];

impl DirectiveName {
    /// Whether it has no effect with these arguments, which it has elsewhere.
    pub(super) fn is_without_effect(self, arguments: &[u8]) -> bool {
        match self {
            Self::CacheUnused => true,
            Self::CacheEngine => !arguments.trim_ascii().eq_ignore_ascii_case(b"off"),
            _ => false,
        }
    }

    /// The class of `AllowOverride` that permits it; none if any file may use it.
    pub(super) const fn class(self) -> Option<OverrideClass> {
        use OverrideClass as C;
        Some(match self {
            Self::AuthBasicProvider
            | Self::AuthGroupFile
            | Self::AuthMerging
            | Self::AuthRealm
            | Self::AuthType
            | Self::AuthUserFile
            | Self::CgiPassAuth
            | Self::Require
            | Self::Satisfy
            | Self::SslRequire
            | Self::SslRequireSsl
            | Self::SslVerifyClient => C::AuthConfig,
            Self::Allow | Self::Deny | Self::Order => C::Limit,
            Self::DirectoryIndex
            | Self::DirectorySlash
            | Self::ExpiresActive
            | Self::ExpiresByType
            | Self::ExpiresDefault
            | Self::FallbackResource
            | Self::IndexIgnore => C::Indexes,
            Self::Options | Self::PhpFlag | Self::PhpValue | Self::SslOptions => C::Options,
            Self::CacheDisable
            | Self::CacheEnable
            | Self::CacheEngine
            | Self::CacheKeyModify
            | Self::CacheLookup
            | Self::CacheMaxExpire
            | Self::CacheStaleAge
            | Self::CacheUnused
            | Self::LimitRequestBody
            | Self::LiteMage
            | Self::ServerSignature => return None,
            Self::AcceptPathInfo
            | Self::AddCharset
            | Self::AddDefaultCharset
            | Self::AddEncoding
            | Self::AddHandler
            | Self::AddLanguage
            | Self::AddOutputFilter
            | Self::AddOutputFilterByType
            | Self::AddType
            | Self::BrowserMatch
            | Self::BrowserMatchNoCase
            | Self::DefaultLanguage
            | Self::ErrorDocument
            | Self::FileEtag
            | Self::ForceType
            | Self::Header
            | Self::Redirect
            | Self::RedirectMatch
            | Self::RedirectPermanent
            | Self::RedirectTemp
            | Self::RemoveCharset
            | Self::RemoveEncoding
            | Self::RemoveHandler
            | Self::RemoveLanguage
            | Self::RemoveOutputFilter
            | Self::RemoveType
            | Self::RequestHeader
            | Self::RewriteBase
            | Self::RewriteCond
            | Self::RewriteEngine
            | Self::RewriteOptions
            | Self::RewriteRule
            | Self::SetEnv
            | Self::SetEnvIf
            | Self::SetEnvIfExpr
            | Self::SetEnvIfNoCase
            | Self::SetHandler
            | Self::SetOutputFilter
            | Self::Substitute
            | Self::SubstituteInheritBefore
            | Self::SubstituteMaxLineLength
            | Self::UnsetEnv => C::FileInfo,
        })
    }
}

/// Directives of the server configuration, in lower case.
const OF_SERVER: [&str; 34] = [
    "alias",
    "aliasmatch",
    "allowoverride",
    "allowoverridelist",
    "customlog",
    "define",
    "documentroot",
    "errorlog",
    "group",
    "include",
    "includeoptional",
    "keepalive",
    "keepalivetimeout",
    "listen",
    "loadmodule",
    "loglevel",
    "logformat",
    "php_admin_flag",
    "php_admin_value",
    "proxypass",
    "proxypassreverse",
    "rewritemap",
    "rewritelog",
    "scriptalias",
    "serveradmin",
    "serveralias",
    "servername",
    "serverroot",
    "servertokens",
    "sslengine",
    "timeout",
    "traceenable",
    "typesconfig",
    "user",
];

fn find(name: &[u8]) -> Option<DirectiveName> {
    let lower = name.to_ascii_lowercase();
    let found = NAMES.binary_search_by(|(known, _)| known.as_bytes().cmp(&lower));
    found.ok().map(|at| NAMES[at].1)
}

/// Whether `<IfDirective>` is true for it.
pub(super) fn is_known(name: &[u8]) -> bool {
    !matches!(Directive::parse(name), Directive::Unknown)
}

impl Directive {
    pub(super) fn parse(name: &[u8]) -> Self {
        if let Some(name) = find(name) {
            return Self::Known(name);
        }
        match OF_SERVER.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())) {
            true => Self::OfServer,
            false => Self::Unknown,
        }
    }
}
