"""Owns: configurations as trees of directives, so that they can be written out and made smaller."""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count


@dataclass
class Node:
    """One directive; a block has children."""

    words: str
    block: "list[Node] | None" = None

    def text(self, depth: int = 0) -> str:
        """The directive as it is written."""
        pad = "    " * depth
        if self.block is None:
            return f"{pad}{self.words};\n"
        return f"{pad}{self.words} {{\n{text_of(self.block, depth + 1)}{pad}}}\n"


def text_of(nodes: "Sequence[Node]", depth: int = 0) -> str:
    """Directives as they are written."""
    return "".join(node.text(depth) for node in nodes)


def reworded(nodes: Sequence[Node], change: Callable[[str], str]) -> list[Node]:
    """The same directives with their words changed."""
    return [
        Node(
            change(node.words),
            None if node.block is None else reworded(node.block, change),
        )
        for node in nodes
    ]


@dataclass
class Conf:
    """What one case adds to the http block.

    @N@ in it becomes the number of the case, @A@ its address.
    """

    nodes: list[Node] = field(default_factory=list)

    def text(self, number: int) -> str:
        """The text of case `number`."""
        text = text_of(self.nodes)
        return text.replace("@N@", str(number)).replace("@A@", address_of(number))


def address_of(number: int) -> str:
    """The address of case `number`, of its own."""
    return f"127.1.{number // 250}.{number % 250 + 1}"


def size(nodes: Sequence[Node]) -> int:
    """How many directives there are."""
    return sum(1 + size(node.block or []) for node in nodes)


def _without(
    nodes: Sequence[Node], gone: Container[int], hoist: int | None, numbers: Iterator[int]
) -> list[Node]:
    """The nodes without those numbered in `gone`; of one numbered `hoist` its children stay.

    A `listen` stays: several servers without one would bind the same port.
    """
    kept: list[Node] = []
    for node in nodes:
        number = next(numbers)
        inner = None if node.block is None else _without(node.block, gone, hoist, numbers)
        if number == hoist and inner is not None:
            kept += inner
        elif number not in gone or node.words.startswith("listen "):
            kept.append(Node(node.words, inner))
    return kept


def without(conf: Conf, gone: Container[int]) -> Conf:
    """The configuration without the nodes of these numbers."""
    return Conf(_without(conf.nodes, gone, None, count()))


def hoisted(conf: Conf) -> list[Conf]:
    """All configurations in which a block's content stands in its place."""
    found = [Conf(_without(conf.nodes, (), number, count())) for number in range(size(conf.nodes))]
    return [one for one in found if size(one.nodes) == size(conf.nodes) - 1]
