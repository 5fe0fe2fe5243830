"""Owns: how tables of short words are written in this package."""


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


def numbers(text: str) -> list[int]:
    """The numbers of a text."""
    return [int(word) for word in text.split()]


def listed(text: str, by: str = ";") -> list[str]:
    """The parts of a text, which `by` divides; where lines end between them means nothing."""
    return [" ".join(part.split()) for part in text.split(by)]
