//! The steps of request processing, and their results.

use crate::phase::rewrite::RewriteCursor;

/// The steps of request processing, in nginx's order of phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestStep {
    /// An error response for a request that never reached a location.
    Refusal(u16),
    /// The rewrite phase of the server block, if it has one.
    Server,
    /// The search for a location.
    Find,
    /// Checks that need only the location: `internal`, body size.
    Location,
    /// The rewrite phase of a server block or location, from this instruction on.
    Rewrite(RewriteCursor),
    /// `allow`, `deny`, `auth_basic`, `auth_request`
    Access,
    /// `apache_htaccess`
    Htaccess,
    /// `try_files`, from this candidate on.
    TryFiles(usize),
    /// `mirror`
    Mirror,
    /// The content of a slice, in the location of its parent.
    Slice,
    /// Files: finds out the kind of the path.
    Content,
    /// `random_index`
    RandomIndex,
    /// `index`, from this name on.
    Index(usize),
    /// Checks whether the directory of a missing index exists.
    IndexDirectory(usize),
    /// `.htaccess` rules for a missing index.
    NoIndex,
    /// `autoindex`
    Listing,
    /// A file.
    File,
    /// `flv`: a file from an offset on.
    Flv,
    /// `dav_methods`
    Dav,
    /// `mp4`: a file, or a part of it between two times.
    Mp4,
    /// `…_pass`: everything that is needed before the upstream request.
    Origin,
    /// The upstream request.
    Ask,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Continue with another step.
    Step(RequestStep),
    /// Wait for a file lookup, then repeat this step.
    Probe(RequestStep),
    /// Wait for a compressed form, then repeat this step.
    Compress(RequestStep),
    /// Wait for a part of a video, or a large listing, then repeat this step.
    Make(RequestStep),
    /// Wait for the check of a password, then repeat this step.
    CheckPassword(RequestStep),
    /// Wait for a change of files.
    ChangeFiles,
    /// Wait for the control thread.
    Command,
    /// Wait for a deadline.
    Delay,
    /// Wait for the request body, then continue with this step.
    Collect(RequestStep),
    /// Wait for the upstream.
    Fetch,
    /// Wait for a fill.
    Coalesce,
    /// Wait for the heads of the page's fragments.
    Assemble,
    /// Wait for the authorization subrequest.
    AwaitAuth,
    /// Send an error response with this status; `error_page` may apply.
    Fail(u16),
    /// Redirect to the address in `Answer::location`; `error_page` may apply.
    Redirect(u16),
    /// Send the built-in page of this status; `error_page` does not apply.
    Page(u16),
    /// The response is complete: send it.
    Respond,
    /// Close the connection without a response, and log this status.
    CloseWithoutResponse(u16),
}
