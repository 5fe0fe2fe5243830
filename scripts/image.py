#!/usr/bin/env python3
"""Writes a directory as an image for containers: an OCI layout in a tar, made without a daemon.

image.py ROOT VERSION OUT; SOURCE_DATE_EPOCH is the time of all files. The same directory gives the
same bytes.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path

# No account of the host has this number.
USER = 65532
DAY = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
OCI = "application/vnd.oci.image"


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    """A file of the layout."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(content), DAY, 0o644
    tar.addfile(info, io.BytesIO(content))


def layer(root: Path) -> bytes:
    """The files below `root`, of root's; sorted, with one time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            info = tar.gettarinfo(path, str(path.relative_to(root)))
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = DAY
            if info.isreg():
                with path.open("rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
    return out.getvalue()


def digest(content: bytes) -> str:
    """The name of a blob."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def main() -> None:
    """Writes the layout."""
    root, version, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    created = datetime.fromtimestamp(DAY, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    files = layer(root)
    packed = gzip.compress(files, int(os.environ.get("BOLIDE_PACKAGE_LEVEL", "9")), mtime=0)
    config = json.dumps(
        {
            "architecture": ARCHITECTURES[platform.machine()],
            "os": "linux",
            "created": created,
            "config": {
                "User": f"{USER}:{USER}",
                "ExposedPorts": {"8080/tcp": {}},
                "Entrypoint": ["/usr/sbin/bolide", "-e", "stderr", "-g", "daemon off;"],
                "WorkingDir": "/",
                "StopSignal": "SIGQUIT",
                "Labels": {
                    "org.opencontainers.image.title": "bolide",
                    "org.opencontainers.image.version": version,
                    "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
                },
            },
            "rootfs": {"type": "layers", "diff_ids": [digest(files)]},
            "history": [{"created": created, "created_by": "scripts/package.sh image"}],
        }
    ).encode()

    def descriptor(kind: str, content: bytes, **more: object) -> dict:
        size = len(content)
        return {"mediaType": f"{OCI}.{kind}", "digest": digest(content), "size": size, **more}

    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": f"{OCI}.manifest.v1+json",
            "config": descriptor("config.v1+json", config),
            "layers": [descriptor("layer.v1.tar+gzip", packed)],
        }
    ).encode()
    name = {"org.opencontainers.image.ref.name": version}
    index = {
        "schemaVersion": 2,
        "mediaType": f"{OCI}.index.v1+json",
        "manifests": [descriptor("manifest.v1+json", manifest, annotations=name)],
    }
    with tarfile.open(out, "w", format=tarfile.PAX_FORMAT) as tar:
        add(tar, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        add(tar, "index.json", json.dumps(index).encode())
        for content in (config, packed, manifest):
            add(tar, "blobs/sha256/" + digest(content).removeprefix("sha256:"), content)


main()
