#!/usr/bin/env python3
"""Writes what the binary is built from, as CycloneDX 1.5.

Crates with version, licence and checksum: what `bolide` links or builds with, for the target of
this machine; test tools are not in it.
"""

import json
import os
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def metadata() -> dict:
    """What cargo knows of all packages, for this machine."""
    host = subprocess.check_output(["rustc", "-vV"], cwd=ROOT, text=True)
    target = next(line for line in host.splitlines() if line.startswith("host: "))[6:]
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", target]
    return json.loads(subprocess.check_output(command, cwd=ROOT))


def linked(graph: dict, start: str) -> dict[str, list[str]]:
    """Each package that `start` needs, with those that it needs itself; without test tools."""
    nodes = {node["id"]: node for node in graph["resolve"]["nodes"]}
    found: dict[str, list[str]] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        needs = [
            dep["pkg"]
            for dep in nodes[name]["deps"]
            if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])
        ]
        found[name] = sorted(needs)
        waiting.extend(needs)
    return found


def main() -> None:
    """Writes the list to standard output."""
    graph = metadata()
    packages = {package["id"]: package for package in graph["packages"]}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(one["name"], one["version"]): one.get("checksum") for one in lock["package"]}
    start = next(id for id, one in packages.items() if one["name"] == "bolide")
    needed = linked(graph, start)

    def purl(id: str) -> str:
        return f"pkg:cargo/{packages[id]['name']}@{packages[id]['version']}"

    def component(id: str) -> dict:
        one = packages[id]
        told = {
            "type": "application" if id == start else "library",
            "bom-ref": purl(id),
            "name": one["name"],
            "version": one["version"],
            "purl": purl(id),
            "licenses": [{"expression": (one["license"] or "NOASSERTION").replace("/", " OR ")}],
        }
        if checksum := checksums.get((one["name"], one["version"])):
            told["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        if one.get("repository"):
            told["externalReferences"] = [{"type": "vcs", "url": one["repository"]}]
        return told

    day = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(day, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": component(start),
        },
        "components": [component(id) for id in sorted(needed, key=purl) if id != start],
        "dependencies": [
            {"ref": purl(id), "dependsOn": sorted(purl(dep) for dep in needed[id])}
            for id in sorted(needed, key=purl)
        ],
    }
    json.dump(bill, sys.stdout, indent=1)
    sys.stdout.write("\n")


main()
