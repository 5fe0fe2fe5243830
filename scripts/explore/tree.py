"""Owns: configurations as trees of directives, so that they can be written out and made smaller."""
from dataclasses import dataclass, field
from itertools import count


@dataclass
class Node:
    """One directive; a block has children."""

    words: str
    block: "list[Node] | None" = None

    def text(self, depth=0):
        pad = "    " * depth
        if self.block is None:
            return f"{pad}{self.words};\n"
        return f"{pad}{self.words} {{\n{text_of(self.block, depth + 1)}{pad}}}\n"


def text_of(nodes, depth=0):
    return "".join(node.text(depth) for node in nodes)


@dataclass
class Conf:
    """What one case adds to the http block; @N@ in it becomes the number of the case, @A@ its address."""

    nodes: list = field(default_factory=list)

    def text(self, number):
        own = f"127.1.{number // 250}.{number % 250 + 1}"
        return text_of(self.nodes).replace("@N@", str(number)).replace("@A@", own)


def size(nodes):
    return sum(1 + size(node.block or []) for node in nodes)


def _without(nodes, gone, hoist, numbers):
    """The nodes without those numbered in `gone`; of one numbered `hoist` only its children stay."""
    kept = []
    for node in nodes:
        number = next(numbers)
        inner = None if node.block is None else _without(node.block, gone, hoist, numbers)
        if number == hoist:
            kept += inner or []
        elif number not in gone:
            kept.append(Node(node.words, inner))
    return kept


def without(conf, gone):
    return Conf(_without(conf.nodes, gone, None, count()))


def hoisted(conf):
    """All configurations in which a block's content stands in its place."""
    found = [Conf(_without(conf.nodes, (), number, count())) for number in range(size(conf.nodes))]
    return [one for one in found if size(one.nodes) == size(conf.nodes) - 1]
