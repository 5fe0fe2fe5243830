//! The words for what is to be done next with a request.

use crate::phase::rewrite::RewriteCursor;

/// What is to be done next with a request, in nginx's order of phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestStep {
    /// An error answer to what never got as far as a location.
    Refusal(u16),
    /// The server block's own rewrite phase, if it has one.
    Server,
    /// The search for a location.
    Find,
    /// The location is known: `internal`, body size.
    Location,
    /// The rewrite phase of a server block or location, from an instruction on.
    Rewrite(RewriteCursor),
    /// `allow`, `deny`, `auth_basic`, `auth_request`
    Access,
    /// `apache_htaccess`
    Htaccess,
    /// `try_files`, from this candidate on.
    TryFiles(usize),
    /// `mirror`
    Mirror,
    /// The content of a slice, where the request that it is for is answered.
    Slice,
    /// Files: what kind of path is it?
    Content,
    /// `random_index`
    RandomIndex,
    /// `index`, from this name on.
    Index(usize),
    /// Whether the directory is there whose index is not.
    IndexDirectory(usize),
    /// What `.htaccess` files say about an index that is not there.
    NoIndex,
    /// `autoindex`
    Listing,
    /// A file.
    File,
    /// A file from a byte on (`flv`).
    Flv,
    /// `dav_methods`
    Dav,
    /// A file, or a part of it between two times (`mp4`).
    Mp4,
    /// An origin: what has to be known and had before it is asked.
    Origin,
    /// The origin is asked.
    Ask,
}

/// Where a step leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// To another step.
    Step(RequestStep),
    /// Nowhere until a look at the disk is done; then this step again.
    Probe(RequestStep),
    /// Nowhere until a compressed form is made; then this step again.
    Compress(RequestStep),
    /// Nowhere until a part of a video, or a large listing, is made; then this step again.
    Make(RequestStep),
    /// Nowhere until a password is checked; then this step again.
    CheckPassword(RequestStep),
    /// Nowhere until files are changed.
    ChangeFiles,
    /// Nowhere until the control thread has done something.
    Command,
    /// Nowhere until the deadline.
    Delay,
    /// Nowhere until the request body is here; then to this step.
    Collect(RequestStep),
    /// Nowhere until the origin says more.
    Fetch,
    /// Nowhere until the fill that is waited for moves.
    Coalesce,
    /// Nowhere until the heads of the page's fragments are there.
    Assemble,
    /// Nowhere until it is known whether the request may come in.
    AwaitAuth,
    /// To an error answer.
    Fail(u16),
    /// To a redirect to the address in `Exchange::location`; error pages may apply.
    Redirect(u16),
    /// To the server's own page for this status, whatever `error_page` says.
    Page(u16),
    /// The answer is complete.
    Respond,
    /// The connection is closed without an answer.
    /// It is logged with this status.
    CloseWithoutResponse(u16),
}
