"""Owns: small MP4 files (ISO/IEC 14496-12) for the comparison, made of numbered samples."""

import struct
from dataclasses import dataclass, field


def atom(name: str, *parts: bytes) -> bytes:
    """An atom of these bytes."""
    content = b"".join(parts)
    return struct.pack(">I4s", len(content) + 8, name.encode()) + content


def table(name: str, rows: list[tuple[int, ...]], lead: bytes = b"") -> bytes:
    """An atom with a table: version and flags, the number of rows, numbers of 32 bits."""
    words = [word for row in rows for word in row]
    return atom(name, bytes(4), lead, struct.pack(f">I{len(words)}I", len(rows), *words))


@dataclass
class Track:
    """A track of samples, each of whose bytes are its number."""

    timescale: int = 1000
    # Numbers of samples, and how long each lasts.
    times: list[tuple[int, int]] = field(default_factory=lambda: [(100, 100)])
    # Samples of each chunk.
    chunks: list[int] = field(default_factory=lambda: [7] * 14 + [2])
    keys: list[int] | None = None
    shifts: list[tuple[int, int]] | None = None
    mark: int = 0
    long: bool = False
    same: int = 0
    handler: str = "vmhd"
    version: int = 0

    def duration(self) -> int:
        """In units of the timescale."""
        return sum(count * each for count, each in self.times)

    def sizes(self) -> list[int]:
        """Bytes of each sample."""
        return [self.same or 5 + number % 7 for number in range(sum(self.chunks))]

    def sample(self, number: int) -> bytes:
        """The bytes of a sample."""
        return bytes([self.mark + number % 100]) * self.sizes()[number]

    def data(self) -> list[bytes]:
        """The bytes of each chunk."""
        chunks, at = [], 0
        for count in self.chunks:
            chunks.append(b"".join(self.sample(number) for number in range(at, at + count)))
            at += count
        return chunks

    def timed(self, name: str, timescale: int | None, duration: int, rest: bytes) -> bytes:
        """mvhd, mdhd or tkhd."""
        word = ">Q" if self.version else ">I"
        moments = struct.pack(word, 1) + struct.pack(word, 2)
        scale = struct.pack(">I", timescale) if timescale is not None else struct.pack(">II", 1, 0)
        lead = bytes([self.version, 0, 0, 0])
        return atom(name, lead, moments, scale, struct.pack(word, duration), rest)

    def atoms(self, offsets: list[int], movie: int) -> bytes:
        """The trak atom, with chunks at these offsets."""
        runs: list[tuple[int, int, int]] = []
        for number, count in enumerate(self.chunks):
            if not runs or runs[-1][1] != count:
                runs.append((number + 1, count, 1))
        sizes = [] if self.same else [struct.pack(">I", size) for size in self.sizes()]
        sized = struct.pack(">II", self.same, sum(self.chunks))
        parts = [
            atom("stsd", struct.pack(">II", 0, 1), atom("avc1", bytes(70))),
            table("stts", list(self.times)),
        ]
        if self.keys is not None:
            parts.append(table("stss", [(key,) for key in self.keys]))
        if self.shifts is not None:
            parts.append(table("ctts", list(self.shifts)))
        parts += [
            table("stsc", list(runs)),
            atom("stsz", bytes(4), sized, *sizes),
        ]
        if self.long:
            words = struct.pack(f">I{len(offsets)}Q", len(offsets), *offsets)
            parts.append(atom("co64", bytes(4), words))
        else:
            parts.append(table("stco", [(offset,) for offset in offsets]))
        minf = atom("minf", atom(self.handler, bytes(8)), atom("dinf"), atom("stbl", *parts))
        duration = self.duration()
        mdhd = self.timed("mdhd", self.timescale, duration, bytes(4))
        tkhd = self.timed("tkhd", None, duration * movie // self.timescale, bytes(60))
        edts = atom("edts", table("elst", [(duration, 0, 65536)]))
        return atom("trak", tkhd, edts, atom("mdia", mdhd, atom("hdlr", bytes(25)), minf))


def video(tracks: list[Track], *, late: bool = False, movie: int = 600, tail: bytes = b"") -> bytes:
    """A file of these tracks, whose chunks take turns; with the moov atom at its end if `late`."""
    ftyp = atom("ftyp", b"isom", bytes(4), b"isomavc1")

    def moov(starts: list[list[int]]) -> bytes:
        duration = max(track.duration() * movie // track.timescale for track in tracks)
        head = tracks[0].timed("mvhd", movie, duration, bytes(80))
        traks = [track.atoms(at, movie) for track, at in zip(tracks, starts, strict=True)]
        return atom("moov", head, *traks, atom("udta", b"not kept"))

    chunks = [track.data() for track in tracks]
    zeros: list[list[int]] = [[0] * len(data) for data in chunks]
    at = len(ftyp) + 8 + (0 if late else len(moov(zeros)))
    starts: list[list[int]] = [[] for _ in tracks]
    body = b""
    for turn in range(max(map(len, chunks))):
        for number, data in enumerate(chunks):
            if turn < len(data):
                starts[number].append(at + len(body))
                body += data[turn]
    parts = [moov(starts), atom("mdat", body)]
    return ftyp + b"".join(reversed(parts) if late else parts) + tail


KEYS = [1, 26, 51, 76]
VIDEO = Track(keys=KEYS, shifts=[(10, 0), (30, 5), (60, 7)])
SOUND = Track(
    timescale=44100,
    times=[(430, 1024), (1, 680)],
    chunks=[10] * 43 + [1],
    mark=100,
    handler="smhd",
)

# Name and content of the files.
FILES: dict[str, bytes] = {
    "v/one.mp4": video([VIDEO]),
    "v/both.mp4": video([VIDEO, SOUND]),
    "v/late.mp4": video([VIDEO, SOUND], late=True),
    "v/long.mp4": video([Track(long=True, version=1, times=[(50, 80), (50, 120)])]),
    "v/same.mp4": video([Track(same=9)]),
    "v/tail.mp4": video([VIDEO], tail=atom("free", b"x" * 20)),
    "v/cut.mp4": video([VIDEO, SOUND], late=True)[:-50],
    "v/head.mp4": video([VIDEO])[:300],
    "v/twice.mp4": video([VIDEO]) + atom("mdat", b"more"),
    "v/bare.mp4": atom("ftyp", b"isom") + atom("mdat", b"x"),
    "v/empty.mp4": b"",
    "v/junk.mp4": b"junk" * 100,
    "v/short.mp4": b"abc",
    "v/nothing.mp4": video([VIDEO]).replace(b"stts", b"free"),
    "v/chunks.mp4": video([VIDEO]).replace(b"stco", b"free"),
    "v/runs.mp4": video([VIDEO]).replace(b"stsc", b"free"),
    "v/sizes.mp4": video([VIDEO]).replace(b"stsz", b"free"),
    "v/cmov.mp4": video([VIDEO]).replace(b"udta", b"cmov"),
}
