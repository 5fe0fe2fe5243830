//! `mp4` and its kin: parts of MP4 files, by the arguments `start` and `end` in seconds.

use crate::directive::{Args, Contexts, DirectiveSpec, flag, own, size};
use crate::model::Handler;

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    own("mp4", Contexts::LOCATION, Args::NONE, |r, _| {
        r.scope.handler = Handler::Mp4;
        Ok(())
    })
    .doc(
        "Serves files, or as MP4 videos what of them is between the arguments `start` and `end`.",
        "mp4;",
    ),
    size("mp4_buffer_size", HSL, |r| &mut r.settings().mp4.buffer_size).doc(
        "How much of a video is read at once, at least, to find out what a part of it needs.",
        "mp4_buffer_size 1m;",
    ),
    size("mp4_max_buffer_size", HSL, |r| &mut r.settings().mp4.max_buffer_size).doc(
        "The largest head (`moov` atom) of a video of which parts are made, if \
         `mp4_buffer_size` is not larger.",
        "mp4_max_buffer_size 20m;",
    ),
    flag("mp4_start_key_frame", HSL, |r| &mut r.settings().mp4.start_key_frame).doc(
        "Whether a part begins with the key frame before `start`, whose frames up to there \
         players leave out.",
        "mp4_start_key_frame on;",
    ),
];
