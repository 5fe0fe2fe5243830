//! What the library may have to compile an expression that others than the administrator wrote:
//! memory as long as what is allowed lasts, and groups in groups not too deep.
//!
//! The code that JIT makes for nested groups, recursions and assertions grows with the square of
//! the expression, and the time with it; its memory is what can be bounded.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

use pcre2_sys as pcre;

use super::{CompileError, message};

/// LIMIT: groups of an expression within one another; the library's own limit is 250.
const NESTED_MAX: u32 = 40;

thread_local! {
    /// Bytes that the library may still have, whatever it has given back.
    static ALLOWED: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Memory for the library, or none.
extern "C" fn allocate(size: usize, _: *mut c_void) -> *mut c_void {
    let Some(left) = ALLOWED.get().checked_sub(size) else { return null_mut() };
    // Beside a limit nothing is counted.
    if ALLOWED.get() != usize::MAX {
        ALLOWED.set(left);
    }
    // SAFETY: any size may be asked for.
    unsafe { libc::malloc(size) }
}

/// Takes back what `allocate` gave.
///
/// # Safety
///
/// The library calls it with what it got, once, or with null.
unsafe extern "C" fn release(block: *mut c_void, _: *mut c_void) {
    // SAFETY: as above.
    unsafe { libc::free(block) };
}

/// Has the library allocate so many bytes at most; how many it did.
pub(super) fn within(most: usize, work: impl FnOnce()) -> usize {
    debug_assert!(most < usize::MAX, "no limit is no bound");
    ALLOWED.set(most);
    work();
    most - ALLOWED.replace(usize::MAX)
}

/// What an expression is compiled with whose compiling is bounded.
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
