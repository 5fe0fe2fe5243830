#!/usr/bin/env python3
"""Owns: whether the manifests of contrib/ are what their schemas allow.

contrib.py kubernetes FILE DIR   each document by the schema of Kubernetes, nothing unknown in it;
                                 writes the files of ConfigMaps to DIR, and prints the probes and
                                 the command of each container
contrib.py compose FILE DIR      the file by the specification of Compose, nothing unknown in it;
                                 writes its configs to DIR, and prints the services
"""

import sys
from pathlib import Path

import kubernetes_validate
import yaml
from compose_spec import PyCompose

# The oldest release that the manifests are for; newer ones take what it takes.
RELEASE = "1.30"


def kubernetes(file: Path, out: Path) -> None:
    """Validates the documents of a file."""
    documents = list(yaml.safe_load_all(file.read_text()))
    for document in documents:
        kubernetes_validate.validate(document, RELEASE, strict=True)
        kind = document["kind"]
        print("kind", kind)
        for name, text in (document.get("data") or {}).items() if kind == "ConfigMap" else ():
            (out / name).write_text(text)
        if kind == "Deployment":
            for container in document["spec"]["template"]["spec"]["containers"]:
                print("command", *container["command"], sep="\t")
                print("stop", *container["lifecycle"]["preStop"]["exec"]["command"], sep="\t")
                for probe in ("livenessProbe", "readinessProbe"):
                    print(probe, container[probe]["httpGet"]["path"])


def compose(file: Path, out: Path) -> None:
    """Validates a file of Compose."""
    read = PyCompose.from_yaml(file.read_text()).to_dict()
    for name in read["services"]:
        print("service", name)
    for name, config in read["configs"].items():
        # Compose puts its variables in where a dollar stands alone.
        (out / name).write_text(config["content"].replace("$$", "$"))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["compose", name, directory]:
            compose(Path(name), Path(directory))
        case ["kubernetes", name, directory]:
            kubernetes(Path(name), Path(directory))
        case _:
            sys.exit(__doc__)
