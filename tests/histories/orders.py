"""Owns: what changes and purges a page: what is sent, and whom it reaches when acknowledged."""

import random
from dataclasses import dataclass
from enum import StrEnum

from .checks import EVERYONE
from .client import USERS, Visitor
from .pages import Cache, Kind, Page, Pages
from .site import HOST, OTHER_HOST
from .wire import Fields


class Order(StrEnum):
    """A way to purge."""

    PURGE_URL = "PURGE of the URL"
    PURGE_TAG = "PURGE of a tag"
    BAN_URL = "BAN of the URL"
    BAN_TAG = "BAN of a tag"
    APP_TAG = "tag by the application"
    APP_PREFIX = "tags by the application"
    APP_URL = "URL by the application"
    APP_SESSIONS = "public tag of private pages by the application"
    APP_ALL = "everything by the application"
    PRIVATE_TAG = "private tag"
    PRIVATE_URL = "private URL"
    PRIVATE_ALL = "everything private"
    PUT = "PUT"
    POST = "POST by a session"
    REFRESH = "REFRESH"
    COMMAND = "bolide cache purge"


BY_URL = (Order.PURGE_URL, Order.BAN_URL, Order.APP_URL, Order.PRIVATE_URL, Order.PUT)
OF_SESSION = (Order.PRIVATE_TAG, Order.PRIVATE_URL, Order.PRIVATE_ALL, Order.POST)
# Commands take a process each, and who purges everything leaves no hits.
WEIGHTS = {Order.PURGE_URL: 12, Order.APP_ALL: 2, Order.COMMAND: 2, Order.PRIVATE_ALL: 3}


@dataclass
class Sent:
    """An order as a request, and the versions (by host, page and audience) that it ends."""

    order: Order
    method: str
    target: str
    fields: Fields
    reaches: list[tuple[str, str, str, int]]
    body: bytes | None = None

    def __str__(self) -> str:
        told = " ".join(f"{name}:{value}" for name, value in self.fields)
        return f"{self.order}: {self.method} {self.target} {told}"


def choose(draw: random.Random, cache: Cache, page: Page, wide: bool) -> Order:
    """An order; only a `wide` one is by URL where that alone does not name the page."""
    if cache is Cache.ZONE:
        return Order.PURGE_URL
    orders = list(Order)
    if page.kind is Kind.BY_ARGUMENT and not wide:
        orders = [order for order in orders if order not in BY_URL]
    return draw.choices(orders, [WEIGHTS.get(order, 6) for order in orders])[0]


def prepare(draw: random.Random, order: Order, pages: Pages, page: Page, wide: bool) -> Sent | None:
    """Changes the page and has the order for it; nothing if the visitor has no session."""
    visitor = Visitor.drawn(draw)
    if order in OF_SESSION and not visitor.user:
        return None
    page.version += 1
    version, tag, session = page.version, f"T{page.name}", f"u={visitor.user}"
    target, audience = page.path, EVERYONE
    if page.kind is Kind.BY_ARGUMENT and order in BY_URL:
        argument = draw.choice(["1", "2"])
        target, audience = f"{target}?id={argument}", f"q={argument}"
    sent = Sent(order, "GET", "/do", [("Host", HOST)], [(HOST, page.name, audience, version)])
    everything = [(one.name, one.version) for one in pages.all.values()]
    sessions = [(HOST, page.name, f"u={user}", version) for user in USERS if user]
    match order:
        case Order.PURGE_URL | Order.REFRESH:
            sent.method, sent.target, sent.fields = "PURGE", target, visitor.fields()
            if pages.cache is Cache.ZONE:
                sent.fields = sent.fields[:1]
            elif visitor.user and (wide or not page.shared):
                sent.reaches.append((HOST, page.name, session, version))
            if order is Order.REFRESH:
                sent.method, sent.reaches = "REFRESH", []
        case Order.PURGE_TAG:
            sent.method, sent.target = "PURGE", "/"
            sent.fields.append(("Cache-Tag", tag))
        case Order.BAN_URL:
            sent.method, sent.target = "BAN", "/"
            pattern = target.replace("?", r"\?")
            sent.fields.append(("X-Ban-Url", f"^{pattern}($|\\?)"))
            if wide or not page.shared:
                sent.reaches += sessions
        case Order.APP_SESSIONS:
            sent.fields.append(("X-Order", f"tag=P{page.name}"))
            sent.reaches = sessions
        case Order.BAN_TAG:
            sent.method, sent.target = "BAN", "/"
            sent.fields.append(("X-Cache-Tags", f"(^|,){tag}(,|$)"))
        case Order.APP_TAG:
            sent.fields.append(("X-Order", draw.choice(["", "public,"]) + f"tag={tag}"))
        case Order.APP_PREFIX:
            sent.fields.append(("X-Order", f"tag={tag}*"))
        case Order.APP_URL:
            sent.fields.append(("X-Order", target))
        case Order.APP_ALL:
            sent.fields.append(("X-Order", "*"))
            sent.reaches = [(HOST, name, EVERYONE, old) for name, old in everything]
        case Order.PUT:
            sent.method, sent.target, sent.body = "PUT", target, b"x"
        case Order.COMMAND:
            sent.fields = [("--tag", tag)]
            sent.reaches.append((OTHER_HOST, page.name, EVERYONE, version))
        case Order.PRIVATE_TAG | Order.PRIVATE_URL | Order.PRIVATE_ALL | Order.POST:
            sent.fields = visitor.fields()
            sent.reaches = [(HOST, page.name, session, version)]
            if order in (Order.PRIVATE_ALL, Order.POST):
                sent.reaches = [(HOST, name, session, old) for name, old in everything]
            if order is Order.POST:
                sent.method, sent.body = "POST", b"x"
            else:
                what = {Order.PRIVATE_TAG: f"tag={tag}", Order.PRIVATE_URL: target}
                sent.fields.append(("X-Order", f"private,{what.get(order, '*')}"))
    return sent
