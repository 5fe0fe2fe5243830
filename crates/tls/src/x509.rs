//! Certificates, revocation lists and their verification by AWS-LC, behind types that own what they
//! point to. This file tells what the library found, in its order; `verdict` says what that means.
//!
//! Each `unsafe` block is one call whose contract is met by
//! the types here: pointers come from the library, are never null, and live as long as their owner.
#![allow(unsafe_code, reason = "the library's functions are foreign; see the SAFETY of each call")]

use std::ffi::{CStr, c_int, c_long};
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};

use aws_lc_sys as lc;

/// A certificate.
pub(crate) struct X509Cert(NonNull<lc::X509>);

/// A revocation list.
pub(crate) struct X509List(NonNull<lc::X509_CRL>);

/// Trusted certificates and revocation lists.
pub(crate) struct X509Store(NonNull<lc::X509_STORE>);

// SAFETY: the library counts references atomically and guards what it computes late by locks; a
// certificate, a list and a store may be used by several threads at once, as its TLS contexts do.
unsafe impl Send for X509Cert {}
// SAFETY: as above; nothing here changes a certificate after it was parsed.
unsafe impl Sync for X509Cert {}
// SAFETY: as above; the store holds its own lock while it is searched.
unsafe impl Send for X509Store {}
// SAFETY: as above; only `&mut self` adds to a store.
unsafe impl Sync for X509Store {}

/// Parses one value that must take all of `der`.
macro_rules! parse {
    ($parse:path, $free:path, $der:expr) => {{
        let der: &[u8] = $der;
        let mut at = der.as_ptr();
        let len = c_long::try_from(der.len()).ok()?;
        // SAFETY: `at` points to `len` readable bytes; no object is given to be used again.
        let made = unsafe { $parse(null_mut(), &raw mut at, len) };
        clear_errors();
        let made = NonNull::new(made)?;
        if at != der.as_ptr_range().end {
            // SAFETY: the value is ours, and used no more.
            unsafe { $free(made.as_ptr()) };
            return None;
        }
        made
    }};
}

impl X509Cert {
    /// A certificate of any version in DER.
    pub(crate) fn parse(der: &[u8]) -> Option<Self> {
        Some(Self(parse!(lc::d2i_X509, lc::X509_free, der)))
    }
}

impl Drop for X509Cert {
    fn drop(&mut self) {
        // SAFETY: this reference is ours, and used no more.
        unsafe { lc::X509_free(self.0.as_ptr()) };
    }
}

impl X509List {
    /// A revocation list of any version in DER.
    pub(crate) fn parse(der: &[u8]) -> Option<Self> {
        Some(Self(parse!(lc::d2i_X509_CRL, lc::X509_CRL_free, der)))
    }
}

impl Drop for X509List {
    fn drop(&mut self) {
        // SAFETY: this reference is ours, and used no more.
        unsafe { lc::X509_CRL_free(self.0.as_ptr()) };
    }
}

impl X509Store {
    /// An empty one; `None` without memory.
    pub(crate) fn new() -> Option<Self> {
        // SAFETY: takes nothing; a failure is null.
        NonNull::new(unsafe { lc::X509_STORE_new() }).map(Self)
    }

    /// Adds a certificate; twice the same counts once. `None` without memory.
    pub(crate) fn trust(&mut self, cert: &X509Cert) -> Option<()> {
        // SAFETY: both are alive; the store takes a reference of its own.
        let done = unsafe { lc::X509_STORE_add_cert(self.0.as_ptr(), cert.0.as_ptr()) };
        (done == 1).then_some(())
    }

    /// Adds a revocation list; twice the same counts once. `None` without memory.
    pub(crate) fn add_list(&mut self, list: &X509List) -> Option<()> {
        // SAFETY: both are alive; the store takes a reference of its own.
        let done = unsafe { lc::X509_STORE_add_crl(self.0.as_ptr(), list.0.as_ptr()) };
        (done == 1).then_some(())
    }
}

impl Drop for X509Store {
    fn drop(&mut self) {
        // SAFETY: this reference is ours, and used no more.
        unsafe { lc::X509_STORE_free(self.0.as_ptr()) };
    }
}

/// What is to be verified.
pub(crate) struct X509Question<'a> {
    pub(crate) store: &'a X509Store,
    pub(crate) leaf: &'a X509Cert,
    /// Certificates that may lie between the leaf and a trusted one, in any order.
    pub(crate) sent: &'a [X509Cert],
    /// Whether the leaf itself is in the store.
    pub(crate) is_trusted: bool,
    pub(crate) is_server: bool,
    /// Certificates between leaf and root, at most.
    pub(crate) depth: u32,
    /// Whether every certificate needs a revocation list.
    pub(crate) needs_lists: bool,
    /// Seconds since 1970.
    pub(crate) now: i64,
}

/// A fault that the library met, and the place of its certificate in the chain, the leaf's is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct X509Fault {
    /// One of the library's `X509_V_ERR_*`.
    pub(crate) code: i32,
    pub(crate) place: usize,
}

/// What a certificate says of itself, as the library reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct X509Facts {
    /// `EXFLAG_*`
    pub(crate) flags: u32,
    /// `X509v3_KU_*`; all bits where it says nothing.
    pub(crate) key_usage: u32,
    /// `XKU_*`; all bits where it says nothing.
    pub(crate) extended_usage: u32,
    /// Authorities that may lie between it and a leaf.
    pub(crate) path_len: Option<i64>,
    /// Whether it names itself as its issuer, and its own key as that which signed it.
    pub(crate) is_own_issuer: bool,
    /// Whether the moment in question is before, within or behind its validity.
    pub(crate) moment: X509Moment,
    /// The security of its key in bits; 0 for one that cannot be read.
    pub(crate) key_strength: u32,
    /// The same of the digest under its signature; `None` for an unknown one.
    pub(crate) digest_strength: Option<u32>,
}

/// Where a moment lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum X509Moment {
    Before,
    Within,
    Behind,
}

/// What came of a verification.
#[derive(Debug, Default)]
pub(crate) struct X509Report {
    /// In the order in which they were met.
    pub(crate) faults: Vec<X509Fault>,
    /// Leaf first.
    pub(crate) chain: Vec<X509Facts>,
    /// Whether all that is to be checked was checked. If not, nothing is proved.
    pub(crate) is_complete: bool,
}

/// Verifies a chain, and goes on behind each fault.
pub(crate) fn verify(question: &X509Question<'_>) -> X509Report {
    let mut report = X509Report::default();
    let done = verify_into(question, &mut report);
    clear_errors();
    report.is_complete = done == Some(1);
    report
}

fn verify_into(question: &X509Question<'_>, report: &mut X509Report) -> Option<c_int> {
    // One that issued itself is trusted or not; no chain is looked for.
    let is_alone = is_own_issuer(question.leaf.0);
    let is_pinned = is_alone && question.is_trusted;
    let pinned = Stack::of(is_pinned.then_some(question.leaf))?;
    let sent = Stack::of(question.sent.iter().filter(|_| !is_alone))?;
    let context = Context::new()?;
    let ctx = context.0.as_ptr();
    let (store, leaf) = (question.store.0.as_ptr(), question.leaf.0.as_ptr());
    // SAFETY: all four outlive the context, which is dropped before them and only borrows them.
    let made = unsafe { lc::X509_STORE_CTX_init(ctx, store, leaf, sent.0.as_ptr().cast()) };
    if made != 1 {
        return None;
    }
    if is_alone {
        // SAFETY: the context is initialised, and borrows the stack, which outlives it.
        unsafe { lc::X509_STORE_CTX_set0_trusted_stack(ctx, pinned.0.as_ptr().cast()) };
    }
    configure(ctx, question, is_pinned)?;
    let mut faults: Vec<X509Fault> = Vec::new();
    // SAFETY: the context is initialised; the place outlives the call that uses it.
    let kept = unsafe { lc::X509_STORE_CTX_set_ex_data(ctx, 0, (&raw mut faults).cast()) };
    if kept != 1 {
        return None;
    }
    // SAFETY: the context is initialised, and `note` is what it expects.
    unsafe { lc::X509_STORE_CTX_set_verify_cb(ctx, Some(note)) };
    // SAFETY: the context is initialised and was not used before.
    let done = unsafe { lc::X509_verify_cert(ctx) };
    report.faults = faults;
    report.chain = chain_of(ctx, question.now);
    if done != 1 {
        // SAFETY: the context is initialised.
        let code = unsafe { lc::X509_STORE_CTX_get_error(ctx) };
        report.faults.push(X509Fault { code, place: 0 });
    }
    Some(done)
}

/// Sets purpose, depth, time and flags.
fn configure(
    ctx: *mut lc::X509_STORE_CTX,
    question: &X509Question<'_>,
    is_pinned: bool,
) -> Option<()> {
    let usage: &CStr = if question.is_server { c"ssl_server" } else { c"ssl_client" };
    // SAFETY: the context is initialised, the name ends with a zero.
    if unsafe { lc::X509_STORE_CTX_set_default(ctx, usage.as_ptr()) } != 1 {
        return None;
    }
    // SAFETY: the context is initialised; its parameters live as long as it does.
    let param = NonNull::new(unsafe { lc::X509_STORE_CTX_get0_param(ctx) })?.as_ptr();
    // The library adds two.
    let depth = c_int::try_from(question.depth).unwrap_or(c_int::MAX - 2);
    // SAFETY: the parameters are the context's.
    unsafe { lc::X509_VERIFY_PARAM_set_depth(param, depth) };
    // SAFETY: the parameters are the context's.
    unsafe { lc::X509_VERIFY_PARAM_set_time_posix(param, question.now) };
    let mut flags = lc::X509_V_FLAG_TRUSTED_FIRST | lc::X509_V_FLAG_CB_ISSUER_CHECK;
    if question.needs_lists {
        flags |= lc::X509_V_FLAG_CRL_CHECK | lc::X509_V_FLAG_CRL_CHECK_ALL;
    }
    if is_pinned {
        flags |= lc::X509_V_FLAG_PARTIAL_CHAIN;
    }
    // SAFETY: the parameters are the context's.
    let set = unsafe { lc::X509_VERIFY_PARAM_set_flags(param, flags.try_into().ok()?) };
    (set == 1).then_some(())
}

/// Takes down a fault, and lets the library go on.
///
/// # Safety
///
/// Called by the library only, with a context whose place 0 holds a list of faults.
unsafe extern "C" fn note(ok: c_int, ctx: *mut lc::X509_STORE_CTX) -> c_int {
    if ok != 0 {
        return 1;
    }
    // SAFETY: the library gives the context that it works on.
    let code = unsafe { lc::X509_STORE_CTX_get_error(ctx) };
    // SAFETY: as above.
    let kept = unsafe { lc::X509_STORE_CTX_get_ex_data(ctx, 0) };
    // SAFETY: `verify_into` put it there, and looks at it only when the library has returned.
    let Some(faults) = (unsafe { kept.cast::<Vec<X509Fault>>().as_mut() }) else { return 0 };
    match code {
        // Not faults, but questions whether one certificate may have issued another.
        lc::X509_V_ERR_UNSPECIFIED
        | lc::X509_V_ERR_SUBJECT_ISSUER_MISMATCH
        | lc::X509_V_ERR_AKID_SKID_MISMATCH
        | lc::X509_V_ERR_AKID_ISSUER_SERIAL_MISMATCH => return 0,
        // OpenSSL takes it for the issuer, and then refuses it. Where the chain is being built,
        // one that issued itself would be taken again and again.
        lc::X509_V_ERR_KEYUSAGE_NO_CERTSIGN => {
            return c_int::from(!faults.is_empty() || !is_same(ctx));
        }
        _ => {}
    }
    // SAFETY: as above.
    let place = unsafe { lc::X509_STORE_CTX_get_error_depth(ctx) };
    faults.push(X509Fault { code, place: usize::try_from(place).unwrap_or(0) });
    1
}

/// Whether the certificate in question and its issuer in question are the same.
fn is_same(ctx: *mut lc::X509_STORE_CTX) -> bool {
    // SAFETY: the context is alive.
    let cert = unsafe { lc::X509_STORE_CTX_get_current_cert(ctx) };
    // SAFETY: the context is alive.
    let issuer = unsafe { lc::X509_STORE_CTX_get0_current_issuer(ctx) };
    // SAFETY: both are null or alive for the length of the library's call.
    cert.is_null() || issuer.is_null() || unsafe { lc::X509_cmp(cert, issuer) } == 0
}

/// The facts of the chain that was built.
fn chain_of(ctx: *mut lc::X509_STORE_CTX, now: i64) -> Vec<X509Facts> {
    // SAFETY: the context is initialised; the chain, if there is one, belongs to it.
    let chain = unsafe { lc::X509_STORE_CTX_get0_chain(ctx) }.cast::<lc::OPENSSL_STACK>();
    // SAFETY: a stack of the library, or null, which counts as empty.
    let len = unsafe { lc::OPENSSL_sk_num(chain) };
    let at = |index| {
        // SAFETY: the index is below the length.
        let cert = unsafe { lc::OPENSSL_sk_value(chain, index) };
        NonNull::new(cert.cast::<lc::X509>()).map(|cert| facts(cert, now))
    };
    (0..len).filter_map(at).collect()
}

/// Whether a certificate names itself as its issuer, and its own key as that which signed it.
fn is_own_issuer(cert: NonNull<lc::X509>) -> bool {
    // SAFETY: the certificate is alive.
    let found = unsafe { lc::X509_check_issued(cert.as_ptr(), cert.as_ptr()) };
    // The usage of the key is the last thing that is looked at.
    [lc::X509_V_OK, lc::X509_V_ERR_KEYUSAGE_NO_CERTSIGN].contains(&found)
}

/// Reads a certificate that its caller keeps alive.
fn facts(cert: NonNull<lc::X509>, now: i64) -> X509Facts {
    let is_own_issuer = is_own_issuer(cert);
    let cert = cert.as_ptr();
    // SAFETY: the certificate is alive.
    let flags = unsafe { lc::X509_get_extension_flags(cert) };
    // SAFETY: the certificate is alive.
    let key_usage = unsafe { lc::X509_get_key_usage(cert) };
    // SAFETY: the certificate is alive.
    let extended_usage = unsafe { lc::X509_get_extended_key_usage(cert) };
    // SAFETY: the certificate is alive.
    let path_len = unsafe { lc::X509_get_pathlen(cert) };
    let mut bits = -1;
    // SAFETY: the certificate is alive; the other results are not wanted.
    unsafe { lc::X509_get_signature_info(cert, null_mut(), null_mut(), &raw mut bits, null_mut()) };
    X509Facts {
        flags,
        key_usage,
        extended_usage,
        path_len: (path_len >= 0).then_some(path_len),
        is_own_issuer,
        moment: moment(cert, now),
        key_strength: key_strength(cert),
        digest_strength: match bits {
            ..=0 => None,
            // Collisions of MD5 and SHA-1 take less than half of their bits.
            1..=64 => Some(39),
            65..=80 => Some(63),
            bits => u32::try_from(bits).ok(),
        },
    }
}

fn moment(cert: *const lc::X509, now: i64) -> X509Moment {
    // SAFETY: the certificate is alive, and keeps its dates alive.
    let start = unsafe { lc::X509_get0_notBefore(cert) };
    // SAFETY: as above.
    let end = unsafe { lc::X509_get0_notAfter(cert) };
    // SAFETY: the date is alive.
    let since_start = unsafe { lc::X509_cmp_time_posix(start, now) };
    // SAFETY: the date is alive.
    let until_end = unsafe { lc::X509_cmp_time_posix(end, now) };
    match (since_start, until_end) {
        (1.., _) => X509Moment::Before,
        (_, ..0) => X509Moment::Behind,
        _ => X509Moment::Within,
    }
}

/// NIST SP 800-57 part 1, table 2.
fn key_strength(cert: *const lc::X509) -> u32 {
    // SAFETY: the certificate is alive, and keeps the key alive.
    let key = unsafe { lc::X509_get0_pubkey(cert) };
    if key.is_null() {
        return 0;
    }
    // SAFETY: the key is alive.
    let kind = unsafe { lc::EVP_PKEY_id(key) };
    // SAFETY: the key is alive.
    let bits = unsafe { lc::EVP_PKEY_bits(key) };
    match (kind, bits) {
        (lc::EVP_PKEY_EC, bits) => u32::try_from(bits / 2).unwrap_or(0),
        (lc::EVP_PKEY_RSA | lc::EVP_PKEY_RSA_PSS, ..1024) => 0,
        (lc::EVP_PKEY_RSA | lc::EVP_PKEY_RSA_PSS, ..2048) => 80,
        (lc::EVP_PKEY_RSA | lc::EVP_PKEY_RSA_PSS, ..3072) => 112,
        _ => 128,
    }
}

/// Empties the thread's list of errors: nothing else looks at it, and results say enough.
fn clear_errors() {
    // SAFETY: takes nothing.
    unsafe { lc::ERR_clear_error() };
}

/// A list of borrowed certificates.
struct Stack<'a>(NonNull<lc::OPENSSL_STACK>, PhantomData<&'a X509Cert>);

impl<'a> Stack<'a> {
    fn of(certs: impl IntoIterator<Item = &'a X509Cert>) -> Option<Self> {
        // SAFETY: takes nothing; a failure is null.
        let stack = Self(NonNull::new(unsafe { lc::OPENSSL_sk_new_null() })?, PhantomData);
        for cert in certs {
            // SAFETY: the stack is alive, and does not own what is pushed.
            let len = unsafe { lc::OPENSSL_sk_push(stack.0.as_ptr(), cert.0.as_ptr().cast()) };
            if len == 0 {
                return None;
            }
        }
        Some(stack)
    }
}

impl Drop for Stack<'_> {
    fn drop(&mut self) {
        // SAFETY: the stack is ours; what is in it is borrowed, and stays.
        unsafe { lc::OPENSSL_sk_free(self.0.as_ptr()) };
    }
}

/// One verification.
struct Context(NonNull<lc::X509_STORE_CTX>);

impl Context {
    fn new() -> Option<Self> {
        // SAFETY: takes nothing; a failure is null.
        NonNull::new(unsafe { lc::X509_STORE_CTX_new() }).map(Self)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is ours, initialised or zero.
        unsafe { lc::X509_STORE_CTX_free(self.0.as_ptr()) };
    }
}
