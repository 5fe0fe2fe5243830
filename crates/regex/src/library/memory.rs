//! The memory limit of PCRE when it compiles an expression that the administrator did not write,
//! and the nesting limit of groups.
//!
//! The JIT code for nested groups, recursions and assertions grows with the square of the
//! expression, and the time with it; the memory can be bounded.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

use pcre2_sys as pcre;

use super::{CompileError, message};

/// LIMIT: nesting of groups; PCRE's own limit is 250.
const NESTED_MAX: u32 = 40;

thread_local! {
    /// Bytes that PCRE may still allocate; freed memory is not given back.
    static ALLOWED: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Allocates memory for PCRE within the limit.
extern "C" fn allocate(size: usize, _: *mut c_void) -> *mut c_void {
    let Some(left) = ALLOWED.get().checked_sub(size) else { return null_mut() };
    // Nothing is counted without a limit.
    if ALLOWED.get() != usize::MAX {
        ALLOWED.set(left);
    }
    // SAFETY: any size may be asked for.
    unsafe { libc::malloc(size) }
}

/// Frees memory of `allocate`.
///
/// # Safety
///
/// The library calls it once for each allocation, or with null.
unsafe extern "C" fn release(block: *mut c_void, _: *mut c_void) {
    // SAFETY: as above.
    unsafe { libc::free(block) };
}

/// Runs `work`, in which PCRE may allocate at most this many bytes; returns how many it did.
pub(super) fn within(most: usize, work: impl FnOnce()) -> usize {
    debug_assert!(most < usize::MAX, "no limit is no bound");
    ALLOWED.set(most);
    work();
    most - ALLOWED.replace(usize::MAX)
}

/// The compile context for expressions whose compilation is bounded.
pub(super) struct CompileContext(NonNull<pcre::pcre2_compile_context_8>);

impl CompileContext {
    pub(super) fn bounded() -> Result<Self, CompileError> {
        let no_memory = || CompileError { message: message(pcre::PCRE2_ERROR_NOMEMORY), offset: 0 };
        // SAFETY: the functions keep the library's contract for them, and want no data.
        let general = unsafe {
            pcre::pcre2_general_context_create_8(Some(allocate), Some(release), null_mut())
        };
        let general = NonNull::new(general).ok_or_else(no_memory)?;
        // SAFETY: the context is valid.
        let context = unsafe { pcre::pcre2_compile_context_create_8(general.as_ptr()) };
        // SAFETY: what was made with it has its functions, and does not point to it.
        unsafe { pcre::pcre2_general_context_free_8(general.as_ptr()) };
        let context = NonNull::new(context).ok_or_else(no_memory)?;
        // SAFETY: the context is valid.
        unsafe { pcre::pcre2_set_parens_nest_limit_8(context.as_ptr(), NESTED_MAX) };
        Ok(Self(context))
    }

    pub(super) const fn as_ptr(&self) -> *mut pcre::pcre2_compile_context_8 {
        self.0.as_ptr()
    }
}

impl Drop for CompileContext {
    fn drop(&mut self) {
        // SAFETY: the context is ours, and used no more.
        unsafe { pcre::pcre2_compile_context_free_8(self.0.as_ptr()) };
    }
}
