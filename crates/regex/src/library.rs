//! Safe wrappers of PCRE2, whose types own what they point to. Each `unsafe` block is one call, or
//! a few, whose contract the types here guarantee: pointers come from the library, are never null,
//! and live as long as their owner; the result of a match is read before the next match.
#![allow(unsafe_code, reason = "the library's functions are foreign; see the SAFETY of each call")]

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr::{NonNull, null_mut};

use pcre2_sys as pcre;

use self::counting::{CalloutBlock, StepCounter, count};
use self::memory::CompileContext;
use crate::PcreOptions;

mod counting;
mod memory;

pub(crate) use counting::{BYTES_PER_STEP, ItemCosts};

/// PCRE's error code for a match that reached its limit.
pub(crate) const TOO_LONG: i32 = pcre::PCRE2_ERROR_MATCHLIMIT;
/// LIMIT: KiB of memory for a match without JIT.
const HEAP_MAX: u32 = 4 * 1024;

/// The address of an empty text.
static EMPTY: [u8; 1] = [0];

/// A match limit that cannot be reached.
const NO_LIMIT: u32 = i32::MAX.unsigned_abs();

type Callout = unsafe extern "C" fn(*mut CalloutBlock, *mut c_void) -> c_int;

// The bindings do not have callouts.
unsafe extern "C" {
    fn pcre2_set_callout_8(
        context: *mut pcre::pcre2_match_context_8,
        callout: Option<Callout>,
        data: *mut c_void,
    ) -> c_int;
}

/// Why an expression is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// PCRE's message.
    pub message: String,
    /// The offset of the error in the expression.
    pub offset: usize,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {}", self.message, self.offset)
    }
}

/// The positions of a match's groups; the first is the whole match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSpans(Vec<Option<(usize, usize)>>);

impl GroupSpans {
    /// Clears them and keeps the buffer.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Sets them for a match without groups.
    pub fn set_whole(&mut self, start: usize, end: usize) {
        debug_assert!(start <= end, "a match begins before it ends");
        self.0.clear();
        self.0.push(Some((start, end)));
    }

    /// The start and end of a group; none if it did not participate.
    #[must_use]
    pub fn get(&self, group: usize) -> Option<(usize, usize)> {
        self.0.get(group).copied().flatten()
    }

    /// The number of groups, including the whole match and those that did not participate.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there was no match.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The outcome of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Found,
    Nothing,
    /// A limit was reached.
    TooLong,
    /// The JIT stack is too small; interpreted it may succeed.
    NoStack,
    /// PCRE's error code.
    Failed(i32),
}

/// A compiled expression.
pub(crate) struct Code {
    code: NonNull<pcre::pcre2_code_8>,
    groups: usize,
    names: Box<[(usize, Box<str>)]>,
    is_anchored: bool,
    has_references: bool,
    items: usize,
    size: usize,
    jit_size: usize,
}

/// How an expression is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeForm {
    Plain,
    /// With a callout before each item.
    Counted,
}

// SAFETY: the library does not change a compiled expression after it was compiled for JIT, which
// happens before anything else can have it; matches keep what they change elsewhere.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the expression is ours, and used no more.
        unsafe { pcre::pcre2_code_free_8(self.code.as_ptr()) };
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("groups", &self.groups).finish_non_exhaustive()
    }
}

impl Code {
    /// Compiles `source`.
    pub(crate) fn new(
        source: &[u8],
        options: PcreOptions,
        form: CodeForm,
    ) -> Result<Self, CompileError> {
        let mut bits = 0;
        bits |= if options.caseless { pcre::PCRE2_CASELESS } else { 0 };
        bits |= if options.dotall { pcre::PCRE2_DOTALL } else { 0 };
        bits |= if options.dollar_end_only { pcre::PCRE2_DOLLAR_ENDONLY } else { 0 };
        bits |= if options.is_trusted { 0 } else { pcre::PCRE2_NEVER_UTF };
        bits |= if form == CodeForm::Counted { pcre::PCRE2_AUTO_CALLOUT } else { 0 };
        let (mut error, mut offset) = (0, 0);
        // Without a context, the defaults apply.
        let context = match options.is_trusted {
            true => None,
            false => Some(CompileContext::bounded()?),
        };
        let context = context.as_ref().map_or(null_mut(), CompileContext::as_ptr);
        // SAFETY: `source` points to its length of readable bytes, which are read in the call only;
        // so is the context.
        let code = unsafe {
            pcre::pcre2_compile_8(
                source.as_ptr(),
                source.len(),
                bits,
                &raw mut error,
                &raw mut offset,
                context,
            )
        };
        let Some(code) = NonNull::new(code) else {
            return Err(CompileError { message: message(error), offset });
        };
        let mut code = Self {
            code,
            groups: 1,
            names: Box::default(),
            is_anchored: false,
            has_references: false,
            items: 0,
            size: 0,
            jit_size: 0,
        };
        code.groups = code.info::<u32>(pcre::PCRE2_INFO_CAPTURECOUNT) as usize + 1;
        code.is_anchored =
            code.info::<u32>(pcre::PCRE2_INFO_ALLOPTIONS) & pcre::PCRE2_ANCHORED != 0;
        code.has_references = code.info::<u32>(pcre::PCRE2_INFO_BACKREFMAX) != 0;
        let size = code.info::<usize>(pcre::PCRE2_INFO_SIZE);
        code.items = size / 4;
        code.size = size;
        code.names = code.read_names();
        Ok(code)
    }

    /// Compiles it with JIT. If JIT is not available, it is interpreted.
    pub(crate) fn compile_jit(&mut self) {
        // SAFETY: the expression is ours, and nothing else has it yet.
        unsafe { pcre::pcre2_jit_compile_8(self.code.as_ptr(), pcre::PCRE2_JIT_COMPLETE) };
        self.jit_size = self.info::<usize>(pcre::PCRE2_INFO_JITSIZE);
    }

    /// Compiles it with JIT within this much memory; for an expression whose compilation is
    /// bounded. Returns the bytes used.
    pub(crate) fn compile_jit_within(&mut self, most: usize) -> usize {
        memory::within(most, || self.compile_jit())
    }

    /// Whether it was compiled with JIT.
    pub(crate) const fn has_jit(&self) -> bool {
        self.jit_size > 0
    }

    pub(crate) const fn groups(&self) -> usize {
        self.groups
    }

    pub(crate) const fn names(&self) -> &[(usize, Box<str>)] {
        &self.names
    }

    /// Whether it is anchored at the start of the search.
    pub(crate) const fn is_anchored(&self) -> bool {
        self.is_anchored
    }

    /// Whether it has backreferences.
    pub(crate) const fn has_references(&self) -> bool {
        self.has_references
    }

    /// The approximate number of items.
    pub(crate) const fn items(&self) -> usize {
        self.items
    }

    /// Bytes of memory without JIT.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// Bytes of memory of the JIT code.
    pub(crate) const fn jit_size(&self) -> usize {
        self.jit_size
    }

    /// A property of the expression; `T` is PCRE's type for `what`.
    fn info<T: Default>(&self, what: u32) -> T {
        let mut value = T::default();
        // SAFETY: `value` is of the type that the library writes for `what`: each caller names it.
        let result = unsafe {
            pcre::pcre2_pattern_info_8(self.code.as_ptr(), what, (&raw mut value).cast::<c_void>())
        };
        debug_assert_eq!(result, 0, "the library knows what is asked");
        value
    }

    fn read_names(&self) -> Box<[(usize, Box<str>)]> {
        let count = self.info::<u32>(pcre::PCRE2_INFO_NAMECOUNT) as usize;
        let size = self.info::<u32>(pcre::PCRE2_INFO_NAMEENTRYSIZE) as usize;
        if count == 0 || size < 3 {
            return Box::default();
        }
        let mut table: *const u8 = std::ptr::null();
        // SAFETY: the library writes a pointer for this question.
        unsafe {
            pcre::pcre2_pattern_info_8(
                self.code.as_ptr(),
                pcre::PCRE2_INFO_NAMETABLE,
                (&raw mut table).cast::<c_void>(),
            );
        }
        if table.is_null() {
            return Box::default();
        }
        // SAFETY: the table has `count` entries of `size` bytes and lives as long as the
        // expression, which is borrowed here.
        let table = unsafe { std::slice::from_raw_parts(table, count * size) };
        let mut names: Vec<(usize, Box<str>)> = table
            .chunks_exact(size)
            .map(|entry| {
                let group = usize::from(u16::from_be_bytes([entry[0], entry[1]]));
                let name = entry[2..].split(|byte| *byte == 0).next().unwrap_or_default();
                (group, String::from_utf8_lossy(name).into())
            })
            .collect();
        names.sort_unstable();
        names.into()
    }

    /// Searches with `limit` steps of PCRE for each position where a match may begin.
    pub(crate) fn search(
        &self,
        text: &[u8],
        limit: u32,
        spans: Option<&mut GroupSpans>,
    ) -> Outcome {
        with_scratch(self.groups, |scratch| {
            // SAFETY: the context is the scratch's own.
            unsafe { pcre::pcre2_set_match_limit_8(scratch.plain.as_ptr(), limit) };
            scratch.run(self, scratch.plain, text, 0, spans)
        })
    }

    /// Searches with an allowance of `steps`, which the callouts count.
    pub(crate) fn search_counted(
        &self,
        text: &[u8],
        costs: ItemCosts<'_>,
        steps: &mut u32,
        mut spans: Option<&mut GroupSpans>,
    ) -> Outcome {
        let mut counter = StepCounter { left: *steps, at: 0, costs };
        let outcome = with_scratch(self.groups, |scratch| {
            let data = (&raw mut counter).cast::<c_void>();
            // SAFETY: the context is the scratch's own; `counter` outlives the matches, which are
            // the only ones that the context is used for before it gets another.
            unsafe { pcre2_set_callout_8(scratch.counted.as_ptr(), Some(count), data) };
            match scratch.run(self, scratch.counted, text, 0, spans.as_deref_mut()) {
                Outcome::NoStack => {
                    scratch.run(self, scratch.counted, text, pcre::PCRE2_NO_JIT, spans)
                }
                outcome => outcome,
            }
        });
        // If the first byte was not found any more, the rest was scanned quickly.
        if outcome == Outcome::Nothing {
            counter.take_rest(text.len());
        }
        *steps = counter.left;
        outcome
    }
}

thread_local! {
    static COMPILED: Cell<usize> = const { Cell::new(0) };
}

/// Adds to the memory of compiled expressions.
pub(crate) fn count_compiled(bytes: usize) {
    COMPILED.set(COMPILED.get().wrapping_add(bytes));
}

/// Bytes of memory of all expressions that this thread has compiled so far, modulo 2^64; the
/// difference of two calls is the memory compiled between them.
#[must_use]
pub fn compiled_here() -> usize {
    COMPILED.get()
}

/// The buffers for the matches of a thread, which are consecutive.
struct Scratch {
    data: NonNull<pcre::pcre2_match_data_8>,
    pairs: usize,
    plain: NonNull<pcre::pcre2_match_context_8>,
    counted: NonNull<pcre::pcre2_match_context_8>,
}

/// The initial number of groups in a thread's scratch.
const PAIRS_AT_FIRST: usize = 16;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// Calls `then` with the thread's scratch, with room for `groups`.
fn with_scratch(groups: usize, then: impl FnOnce(&Scratch) -> Outcome) -> Outcome {
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.pairs < groups {
            scratch.grow(groups);
        }
        then(scratch)
    })
}

/// Memory of the library; no match is possible without it.
fn made<T>(pointer: *mut T) -> NonNull<T> {
    match NonNull::new(pointer) {
        Some(pointer) => pointer,
        None => std::alloc::handle_alloc_error(std::alloc::Layout::new::<usize>()),
    }
}

fn new_data(pairs: usize) -> NonNull<pcre::pcre2_match_data_8> {
    let pairs = u32::try_from(pairs).unwrap_or(u32::MAX);
    // SAFETY: no context stands for the system's memory.
    made(unsafe { pcre::pcre2_match_data_create_8(pairs, null_mut()) })
}

fn new_context() -> NonNull<pcre::pcre2_match_context_8> {
    // SAFETY: no context stands for the system's memory.
    let context = made(unsafe { pcre::pcre2_match_context_create_8(null_mut()) });
    // SAFETY: the context was made just now.
    unsafe { pcre::pcre2_set_heap_limit_8(context.as_ptr(), HEAP_MAX) };
    // SAFETY: as above.
    unsafe { pcre::pcre2_set_match_limit_8(context.as_ptr(), NO_LIMIT) };
    context
}

impl Scratch {
    fn new() -> Self {
        Self {
            data: new_data(PAIRS_AT_FIRST),
            pairs: PAIRS_AT_FIRST,
            plain: new_context(),
            counted: new_context(),
        }
    }

    fn grow(&mut self, pairs: usize) {
        let data = new_data(pairs);
        let old = std::mem::replace(&mut self.data, data);
        self.pairs = pairs;
        // SAFETY: the old one is ours, and used no more.
        unsafe { pcre::pcre2_match_data_free_8(old.as_ptr()) };
    }

    fn run(
        &self,
        code: &Code,
        context: NonNull<pcre::pcre2_match_context_8>,
        text: &[u8],
        options: u32,
        spans: Option<&mut GroupSpans>,
    ) -> Outcome {
        debug_assert!(self.pairs >= code.groups, "each group has room");
        // PCRE reads whole words around a text, so even an empty one needs an address.
        let start = if text.is_empty() { EMPTY.as_ptr() } else { text.as_ptr() };
        // SAFETY: `start` points to `text.len()` readable bytes that nothing changes in the call;
        // the match data has room for the groups, and this thread alone uses it and the context.
        let found = unsafe {
            pcre::pcre2_match_8(
                code.code.as_ptr(),
                start,
                text.len(),
                0,
                options,
                self.data.as_ptr(),
                context.as_ptr(),
            )
        };
        match found {
            pcre::PCRE2_ERROR_NOMATCH => Outcome::Nothing,
            pcre::PCRE2_ERROR_MATCHLIMIT => Outcome::TooLong,
            pcre::PCRE2_ERROR_JIT_STACKLIMIT => Outcome::NoStack,
            failed if failed < 0 => Outcome::Failed(failed),
            _ => {
                if let Some(spans) = spans {
                    self.read(code.groups, text.len(), spans);
                }
                Outcome::Found
            }
        }
    }

    /// Reads the positions of the last match's groups.
    fn read(&self, groups: usize, len: usize, spans: &mut GroupSpans) {
        // SAFETY: the match data is the scratch's own.
        let vector = unsafe { pcre::pcre2_get_ovector_pointer_8(self.data.as_ptr()) };
        // SAFETY: the vector has two entries for each of `pairs`, of which a match has written
        // those of all groups of its expression; they are read before the next match.
        let places = unsafe { std::slice::from_raw_parts(vector, groups * 2) };
        spans.0.clear();
        spans.0.extend(places.chunks_exact(2).map(|place| {
            // `\K` in an assertion may put the start behind the end.
            let (start, end) = (place[0].min(place[1]), place[1]);
            (place[0] != pcre::PCRE2_UNSET && end <= len).then_some((start, end))
        }));
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the match data is ours, and used no more.
        unsafe { pcre::pcre2_match_data_free_8(self.data.as_ptr()) };
        for context in [self.plain, self.counted] {
            // SAFETY: both contexts are ours, and used no more.
            unsafe { pcre::pcre2_match_context_free_8(context.as_ptr()) };
        }
    }
}

/// PCRE's message for an error code.
fn message(error: c_int) -> String {
    // PCRE recommends 120 bytes.
    let mut text = [0_u8; 256];
    // SAFETY: the library writes at most so many bytes, with a NUL behind what it wrote.
    let written = unsafe { pcre::pcre2_get_error_message_8(error, text.as_mut_ptr(), text.len()) };
    let len = usize::try_from(written).unwrap_or(0).min(text.len());
    String::from_utf8_lossy(&text[..len]).into_owned()
}
