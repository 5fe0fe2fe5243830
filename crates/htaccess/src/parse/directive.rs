//! The effect of each directive on the settings of its place.

use super::names::DirectiveName;
use super::php;
use crate::access::{self, Requirement};
use crate::cache::{self, CacheLine};
use crate::expires;
use crate::fault::{ParseResult, shown};
use crate::headers::{self, HeaderSide};
use crate::lines::ArgumentWords;
use crate::methods::MethodSet;
use crate::mime::MimeRules;
use crate::options;
use crate::output;
use crate::pattern::Letters;
use crate::redirect;
use crate::rewrite;
use crate::setenv::{self, EnvRule};
use crate::settings::{AuthMerging, AuthScheme, EtagParts, PathInfoRule, Settings};
use crate::substitute;

/// LIMIT: entries of a list.
const ENTRIES_MAX: usize = 20_000;

impl DirectiveName {
    /// Parses its arguments into the settings of its place; `methods` are those of an enclosing
    /// `<Limit>`.
    pub(super) fn read(
        self,
        arguments: &[u8],
        own: &mut Settings,
        methods: Option<&MethodSet>,
    ) -> ParseResult<()> {
        match self {
            Self::Require | Self::Order | Self::Allow | Self::Deny | Self::Satisfy => {
                self.read_access(arguments, own, methods)
            }
            Self::AuthBasicProvider
            | Self::AuthGroupFile
            | Self::AuthMerging
            | Self::AuthRealm
            | Self::AuthType
            | Self::AuthUserFile => self.read_auth(arguments, own),
            Self::RewriteBase
            | Self::RewriteCond
            | Self::RewriteEngine
            | Self::RewriteOptions
            | Self::RewriteRule => {
                own.rewriting.is_given = true;
                let read = match self {
                    Self::RewriteBase => rewrite::base,
                    Self::RewriteCond => rewrite::condition,
                    Self::RewriteEngine => rewrite::engine,
                    Self::RewriteOptions => rewrite::options,
                    _ => rewrite::rule,
                };
                read(&mut own.rewriting, arguments)
            }
            Self::AddCharset
            | Self::AddDefaultCharset
            | Self::AddEncoding
            | Self::AddHandler
            | Self::AddLanguage
            | Self::AddType
            | Self::DefaultLanguage
            | Self::ForceType
            | Self::RemoveCharset
            | Self::RemoveEncoding
            | Self::RemoveHandler
            | Self::RemoveLanguage
            | Self::RemoveType
            | Self::SetHandler => self.read_mime(arguments, &mut own.mime),
            Self::BrowserMatch
            | Self::BrowserMatchNoCase
            | Self::SetEnvIf
            | Self::SetEnvIfExpr
            | Self::SetEnvIfNoCase
            | Self::SetEnv
            | Self::UnsetEnv => self.read_env(arguments, own),
            Self::ExpiresActive | Self::ExpiresByType | Self::ExpiresDefault => {
                self.read_expires(arguments, own)
            }
            Self::Redirect | Self::RedirectMatch | Self::RedirectPermanent | Self::RedirectTemp => {
                let (name, fixed) = match self {
                    Self::RedirectMatch => ("RedirectMatch", None),
                    Self::RedirectPermanent => ("RedirectPermanent", Some(301)),
                    Self::RedirectTemp => ("RedirectTemp", Some(302)),
                    _ => ("Redirect", None),
                };
                own.redirects.push(redirect::parse(name, arguments, fixed)?);
                Ok(())
            }
            Self::AddOutputFilter
            | Self::AddOutputFilterByType
            | Self::RemoveOutputFilter
            | Self::SetOutputFilter
            | Self::Substitute
            | Self::SubstituteInheritBefore
            | Self::SubstituteMaxLineLength => self.read_filters(arguments, own),
            Self::SslOptions | Self::SslRequire | Self::SslRequireSsl | Self::SslVerifyClient => {
                self.read_tls(arguments, own)
            }
            Self::CacheDisable => cache::prefix(&mut own.cache, "CacheDisable", arguments, false),
            Self::CacheEnable => cache::prefix(&mut own.cache, "CacheEnable", arguments, true),
            Self::CacheEngine => cache::engine(&mut own.cache, arguments),
            Self::CacheMaxExpire => {
                cache::time(&mut own.cache, "CacheMaxExpire", arguments, CacheLine::LifetimeMax)
            }
            Self::CacheStaleAge => {
                cache::time(&mut own.cache, "CacheStaleAge", arguments, CacheLine::StaleMax)
            }
            Self::CacheUnused => Ok(()),
            Self::CacheKeyModify => cache::key_modify(&mut own.cache, arguments),
            Self::CacheLookup => cache::lookup(&mut own.cache, arguments),
            Self::LiteMage => cache::litemage(&mut own.cache, arguments),
            _ => self.read_rest(arguments, own),
        }
    }

    fn read_access(
        self,
        arguments: &[u8],
        own: &mut Settings,
        methods: Option<&MethodSet>,
    ) -> ParseResult<()> {
        let all = MethodSet::all;
        let of = || methods.cloned().unwrap_or_else(all);
        match self {
            Self::Require => {
                let rule = access::require(arguments)?;
                if rule.only_refuses() {
                    return Err(
                        "negative Require directive has no effect in <RequireAny> directive"
                            .to_owned(),
                    );
                }
                own.rules.push(match methods {
                    Some(methods) => Requirement::For(methods.clone(), Box::new(rule)),
                    None => rule,
                });
                return Ok(());
            }
            Self::Order => own.hosts.orders.push((of(), access::order(arguments)?)),
            Self::Allow => {
                let list = access::allow_or_deny(arguments, false)?;
                own.hosts.allow.extend(list.into_iter().map(|who| (of(), who)));
            }
            Self::Deny => {
                let list = access::allow_or_deny(arguments, true)?;
                own.hosts.deny.extend(list.into_iter().map(|who| (of(), who)));
            }
            _ => own.hosts.satisfies.push((of(), access::satisfy(arguments)?)),
        }
        own.hosts.is_given = true;
        Ok(())
    }

    fn read_auth(self, arguments: &[u8], own: &mut Settings) -> ParseResult<()> {
        let name = match self {
            Self::AuthBasicProvider => "AuthBasicProvider",
            Self::AuthGroupFile => "AuthGroupFile",
            Self::AuthMerging => "AuthMerging",
            Self::AuthRealm => "AuthName",
            Self::AuthType => "AuthType",
            _ => "AuthUserFile",
        };
        let word = one(name, arguments)?;
        let lower = word.to_ascii_lowercase();
        match self {
            Self::AuthBasicProvider => {
                if lower != b"file" {
                    return Err(format!("Unknown Authn provider: {}", shown(&word)));
                }
            }
            Self::AuthMerging => {
                own.merging = Some(match &lower[..] {
                    b"off" => AuthMerging::Off,
                    b"and" => AuthMerging::And,
                    b"or" => AuthMerging::Or,
                    _ => return Err("AuthMerging must be one of: Off | And | Or".to_owned()),
                });
            }
            Self::AuthType => {
                own.auth_type = Some(match &lower[..] {
                    b"none" => AuthScheme::None,
                    b"basic" => AuthScheme::Basic,
                    _ => return Err(format!("AuthType {} is not available here", shown(&word))),
                });
            }
            Self::AuthRealm => own.auth_name = Some(word.into()),
            Self::AuthGroupFile => own.group_file = Some(word.into()),
            _ => own.user_file = Some(word.into()),
        }
        Ok(())
    }

    fn read_tls(self, arguments: &[u8], own: &mut Settings) -> ParseResult<()> {
        match self {
            Self::SslOptions => own.tls.options(arguments),
            Self::SslRequire => own.tls.require(arguments),
            Self::SslVerifyClient => own.tls.verify_client(arguments),
            _ => {
                own.tls.is_needed = true;
                no_arguments("SSLRequireSSL", arguments)
            }
        }
    }

    fn read_filters(self, arguments: &[u8], own: &mut Settings) -> ParseResult<()> {
        match self {
            Self::AddOutputFilter => output::add(&mut own.output, arguments),
            Self::AddOutputFilterByType => output::add_by_type(&mut own.output, arguments),
            Self::RemoveOutputFilter => output::remove(&mut own.output, arguments),
            Self::SetOutputFilter => output::set(&mut own.output, arguments),
            Self::SubstituteInheritBefore => {
                let is_on = flag("SubstituteInheritBefore", arguments)?;
                substitute::inherit_before(&mut own.substitute, is_on);
                Ok(())
            }
            Self::SubstituteMaxLineLength => substitute::line_max(&mut own.substitute, arguments),
            _ => substitute::substitute(&mut own.substitute, arguments),
        }
    }

    fn read_mime(self, arguments: &[u8], own: &mut MimeRules) -> ParseResult<()> {
        let mut words = ArgumentWords::new(arguments);
        let first = words.next_word().ok_or("directive requires at least one argument")?;
        let is_none = first.eq_ignore_ascii_case(b"none");
        let lone = |words: ArgumentWords<'_>| match words.rest() {
            [] => Ok(()),
            _ => Err("directive takes one argument".to_owned()),
        };
        match self {
            Self::ForceType => {
                own.forced = Some((!is_none).then(|| first.to_ascii_lowercase().into()));
                return lone(words);
            }
            Self::SetHandler => {
                own.handler = Some((!is_none).then(|| first.to_ascii_lowercase().into()));
                return lone(words);
            }
            Self::DefaultLanguage => {
                own.default_language = Some(language(&first)?);
                return lone(words);
            }
            Self::AddDefaultCharset => {
                own.default_charset = Some(match &first.to_ascii_lowercase()[..] {
                    b"off" => None,
                    b"on" => Some(b"iso-8859-1"[..].into()),
                    _ => Some(token(&first)?),
                });
                return lone(words);
            }
            _ => {}
        }
        let adds = matches!(
            self,
            Self::AddCharset
                | Self::AddEncoding
                | Self::AddHandler
                | Self::AddLanguage
                | Self::AddType
        );
        let map = match self {
            Self::AddCharset | Self::RemoveCharset => &mut own.charsets,
            Self::AddEncoding | Self::RemoveEncoding => &mut own.encodings,
            Self::AddHandler | Self::RemoveHandler => &mut own.handlers,
            Self::AddLanguage | Self::RemoveLanguage => &mut own.languages,
            _ => &mut own.types,
        };
        let extension = |word: &[u8]| -> Box<[u8]> {
            word.strip_prefix(b".").unwrap_or(word).to_ascii_lowercase().into()
        };
        if !adds {
            map.push((extension(&first), None));
            map.extend(words.map(|word| (extension(&word), None)));
            return Ok(());
        }
        if words.rest().is_empty() {
            return Err("directive requires at least two arguments".to_owned());
        }
        let value: Box<[u8]> = match self {
            Self::AddHandler => first.to_ascii_lowercase().into(),
            Self::AddType => first.to_ascii_lowercase().into(),
            Self::AddLanguage => language(&first)?,
            Self::AddEncoding => Box::from(coding(&first)?),
            _ => token(&first.to_ascii_lowercase())?,
        };
        if value.iter().any(u8::is_ascii_control) || map.len() > ENTRIES_MAX {
            return Err("value is not acceptable".to_owned());
        }
        map.extend(words.map(|word| (extension(&word), Some(value.clone()))));
        Ok(())
    }

    fn read_env(self, arguments: &[u8], own: &mut Settings) -> ParseResult<()> {
        let line = match self {
            Self::BrowserMatch => setenv::browser_match(arguments, Letters::Exact)?,
            Self::BrowserMatchNoCase => setenv::browser_match(arguments, Letters::Any)?,
            Self::SetEnvIf => setenv::set_env_if(arguments, Letters::Exact)?,
            Self::SetEnvIfNoCase => setenv::set_env_if(arguments, Letters::Any)?,
            Self::SetEnvIfExpr => setenv::set_env_if_expr(arguments)?,
            _ => {
                let words: Vec<Vec<u8>> = ArgumentWords::new(arguments).collect();
                match (self, &words[..]) {
                    (Self::SetEnv, [name]) => {
                        own.env.push(EnvRule::Set(name.clone().into(), Box::default()));
                    }
                    (Self::SetEnv, [name, value]) => {
                        own.env.push(EnvRule::Set(name.clone().into(), value.clone().into()));
                    }
                    (Self::UnsetEnv, [_, ..]) => {
                        own.env.extend(words.into_iter().map(|name| EnvRule::Unset(name.into())));
                    }
                    (Self::SetEnv, _) => {
                        return Err("SetEnv takes one or two arguments".to_owned());
                    }
                    _ => return Err("UnsetEnv requires at least one argument".to_owned()),
                }
                return Ok(());
            }
        };
        own.env_if.push(line.at(own.rewriting.line));
        Ok(())
    }

    fn read_expires(self, arguments: &[u8], own: &mut Settings) -> ParseResult<()> {
        let words: Vec<Vec<u8>> = ArgumentWords::new(arguments).collect();
        match self {
            Self::ExpiresActive => {
                own.expiry.active = Some(flag("ExpiresActive", arguments)?);
            }
            Self::ExpiresDefault => {
                let text = words.join(&b' ');
                if words.is_empty() {
                    return Err("ExpiresDefault takes one argument".to_owned());
                }
                own.expiry.default = Some(expires::code("ExpiresDefault", &text)?);
            }
            _ => {
                let Some((name, rest)) = words.split_first().filter(|(_, rest)| !rest.is_empty())
                else {
                    return Err("ExpiresByType takes two arguments".to_owned());
                };
                let directive = format!("ExpiresByType {}", shown(name));
                let rule = expires::code(&directive, &rest.join(&b' '))?;
                own.expiry.by_type.push((name.to_ascii_lowercase().into(), rule));
            }
        }
        Ok(())
    }

    fn read_rest(self, arguments: &[u8], own: &mut Settings) -> ParseResult<()> {
        match self {
            Self::Options => own.options = Some(options::parse(arguments, own.options)?),
            Self::DirectoryIndex => {
                let names = own.index.get_or_insert_default();
                for word in ArgumentWords::new(arguments) {
                    if word == b"disabled" {
                        names.clear();
                    } else {
                        names.push(word.into());
                    }
                }
            }
            Self::DirectorySlash => {
                own.redirects_to_slash = Some(flag("DirectorySlash", arguments)?);
            }
            Self::FallbackResource => {
                let word = one("FallbackResource", arguments)?;
                own.fallback = Some(match &word[..] {
                    b"disabled" => None,
                    [b'/', ..] => Some(word.into()),
                    _ => return Err("FallbackResource takes a path with a slash here".to_owned()),
                });
            }
            Self::IndexIgnore => own.hidden.extend(ArgumentWords::new(arguments).map(Into::into)),
            Self::Header => own.headers.extend(headers::parse(arguments, HeaderSide::Response)?),
            Self::RequestHeader => {
                own.request_headers.extend(headers::parse(arguments, HeaderSide::Request)?);
            }
            Self::ErrorDocument => own.errors.push(redirect::error_document(arguments)?),
            Self::LimitRequestBody => {
                let word = one("LimitRequestBody", arguments)?;
                let number = std::str::from_utf8(&word).ok().and_then(|text| text.parse().ok());
                own.body_max = Some(number.ok_or("LimitRequestBody requires a number of bytes")?);
            }
            Self::FileEtag => own.etag = etag(arguments)?,
            Self::PhpValue | Self::PhpFlag => {
                own.php.push(php::setting(self == Self::PhpFlag, arguments)?);
            }
            Self::ServerSignature => {
                if !one("ServerSignature", arguments)?.eq_ignore_ascii_case(b"off") {
                    return Err("ServerSignature can only be Off here".to_owned());
                }
            }
            Self::CgiPassAuth => {
                if !flag("CGIPassAuth", arguments)? {
                    return Err("CGIPassAuth can only be On here".to_owned());
                }
            }
            _ => {
                own.path_info =
                    Some(match &one("AcceptPathInfo", arguments)?.to_ascii_lowercase()[..] {
                        b"on" => PathInfoRule::Accept,
                        b"off" => PathInfoRule::Refuse,
                        b"default" => PathInfoRule::Default,
                        _ => {
                            return Err(
                                "AcceptPathInfo must be set to on, off or default".to_owned()
                            );
                        }
                    });
            }
        }
        Ok(())
    }
}

fn one(name: &str, arguments: &[u8]) -> ParseResult<Vec<u8>> {
    let mut words = ArgumentWords::new(arguments);
    match (words.next_word(), words.rest()) {
        (Some(word), []) => Ok(word),
        _ => Err(format!("{name} takes one argument")),
    }
}

fn no_arguments(name: &str, arguments: &[u8]) -> ParseResult<()> {
    match arguments {
        [] => Ok(()),
        _ => Err(format!("{name} takes no arguments")),
    }
}

fn flag(name: &str, arguments: &[u8]) -> ParseResult<bool> {
    match &one(name, arguments)?.to_ascii_lowercase()[..] {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(format!("{name} must be On or Off")),
    }
}

/// A content coding of files.
fn coding(word: &[u8]) -> ParseResult<&'static [u8]> {
    Ok(match &word.to_ascii_lowercase()[..] {
        b"gzip" | b"x-gzip" => b"gzip",
        b"br" => b"br",
        b"zstd" => b"zstd",
        b"compress" | b"x-compress" => b"compress",
        b"deflate" => b"deflate",
        _ => return Err(format!("AddEncoding: '{}' is not available here", shown(word))),
    })
}

/// A language's tag.
fn language(word: &[u8]) -> ParseResult<Box<[u8]>> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    match !word.is_empty() && word.iter().all(is_part) {
        true => Ok(word.to_ascii_lowercase().into()),
        false => Err(format!("'{}' is not acceptable", shown(word))),
    }
}

/// A token that may be part of a field.
fn token(word: &[u8]) -> ParseResult<Box<[u8]>> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.+:*".contains(byte);
    match word.iter().all(is_part) {
        true => Ok(word.into()),
        false => Err(format!("'{}' is not acceptable", shown(word))),
    }
}

fn etag(arguments: &[u8]) -> ParseResult<Option<EtagParts>> {
    let mut parts = None;
    for word in ArgumentWords::new(arguments) {
        parts = match &word.to_ascii_lowercase()[..] {
            b"none" => Some(EtagParts::None),
            b"all" | b"mtime" | b"size" | b"+mtime" | b"+size" => Some(EtagParts::Usual),
            // Without one of them Apache's tag differs, and so does ours.
            b"inode" | b"+inode" | b"-inode" | b"-mtime" | b"-size" => parts,
            _ => {
                return Err(format!("Unknown keyword '{}' for FileETag directive", shown(&word)));
            }
        };
    }
    Ok(parts)
}
