"""Owns: making a case that differs smaller while it still differs in the same way."""

import re
from collections.abc import Sequence
from itertools import zip_longest

from .requests import Request, simpler
from .run import Case, Difference, Runner
from .tree import Conf, hoisted, size, without

# How often a case is made smaller, and how many smaller ones are tried in one go.
ROUNDS = 12
AT_ONCE = 40
SIMPLER_MAX = 60


def kind_of(difference: Difference, requests: Sequence[Request]) -> str:
    """What sort of difference this is, so that a smaller case can be told to have the same."""
    at, wanted, found = difference
    if at == len(requests):
        return "log: " + ",".join(sorted(columns(wanted, found)))
    if at > len(requests):
        lines = [line for line in wanted if line not in found]
        lines += [line for line in found if line not in wanted]
        words = re.sub(r'"[^"]*"', '""', lines[0] if lines else "order")
        return "error log: " + " ".join(words.split(" ")[:7])
    return ",".join(sorted(map(name_of, set(wanted) ^ set(found))))


def name_of(line: str) -> str:
    """What a line of an answer is about."""
    return line[:12] if line.startswith(("HTTP/", "body", "raw")) else line.partition(":")[0]


def columns(wanted: Sequence[str], found: Sequence[str]) -> set[str]:
    """The numbers of the columns of a log that differ."""
    rows = [
        enumerate(zip(one.split("|"), other.split("|"), strict=False))
        for one, other in zip(wanted, found, strict=False)
    ]
    return {str(at) for row in rows for at, (one, other) in row if one != other}


def shrink(runner: Runner, case: Case) -> tuple[Case, list[Difference]]:
    """The smallest case found that still differs, and its differences."""
    found, _ = runner.differences([case])
    if not found or not found[0]:
        return case, []
    kind = kind_of(found[0][0], case.requests)
    alone = still(
        runner, kind, [Case(case.conf, [one], case.seed, case.way) for one in case.requests]
    )
    case = alone[0] if alone else case
    for _ in range(ROUNDS):
        smaller = shrink_conf(runner, kind, case) or shrink_request(runner, kind, case)
        if smaller is None:
            break
        case = smaller
    found, _ = runner.differences([case])
    return case, found[0] if found else []


def shrink_request(runner: Runner, kind: str, case: Case) -> Case | None:
    """The case with a simpler request, if it has but one."""
    if len(case.requests) != 1:
        return None
    requests = simpler(case.requests[0])[:SIMPLER_MAX]
    tries = still(runner, kind, [Case(case.conf, [one], case.seed, case.way) for one in requests])
    return tries[0] if tries else None


def shrink_conf(runner: Runner, kind: str, case: Case) -> Case | None:
    """The case with as many directives less as can be told in one go; None if none can."""

    def tried(conf: Conf) -> Case:
        return Case(conf, case.requests, case.seed, case.way)

    every = [{number} for number in range(size(case.conf.nodes))]
    tries = [tried(without(case.conf, gone)) for gone in every]
    kept = {id(one) for one in still(runner, kind, tries)}
    free = [gone for gone, one in zip(every, tries, strict=True) if id(one) in kept]
    if not free:
        better = still(runner, kind, [tried(conf) for conf in hoisted(case.conf)])
        return better[0] if better else None
    groups: list[set[int]] = []
    length = len(free)
    while length > 1:
        for at in range(0, len(free), length):
            groups.append(set[int]().union(*free[at : at + length]))
        length //= 2
    smaller = [tried(without(case.conf, group)) for group in groups + free]
    better = still(runner, kind, smaller)
    return min(better, key=lambda one: size(one.conf.nodes), default=None)


def still(runner: Runner, kind: str, tries: Sequence[Case]) -> list[Case]:
    """Those that differ in this way."""
    kept = []
    for start in range(0, len(tries), AT_ONCE):
        some = list(tries[start : start + AT_ONCE])
        found, _ = runner.differences(some)
        if found is None:
            some, _ = runner.valid(some)
            found, said = runner.differences(some) if some else ([], "")
            if said:
                print(said)
        for one, own in zip_longest(some, found or [], fillvalue=None):
            if one and own and any(kind_of(each, one.requests) == kind for each in own):
                kept.append(one)
    return kept
