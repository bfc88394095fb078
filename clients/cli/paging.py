"""Listings, page by page, to as many rows as are wanted. Trio shell. PROTOCOL.md 4."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from transport.client import Client
from transport.protocol.base import Params, WireModel
from transport.protocol.methods import Method

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=WireModel)
T = TypeVar("T")

PAGE: Final = 100  # rows; an Agent gives no more at once


async def list_rows(
    client: Client,
    method: Method[P, R],
    params: P,
    rows: Callable[[R], tuple[Sequence[T], str | None]],
    *,
    count: int | None = None,
    stop: Callable[[T], bool] | None = None,
    keep: Callable[[T], bool] | None = None,
) -> list[T]:
    """Return the rows of a listing, at most `count`, up to the first that `stop` is for.

    `rows`: of a page, with its next cursor. That row is not among them. `keep`: only
    these rows count.
    """
    found: list[T] = []
    while count is None or len(found) < count:
        wanted = None if count is None or keep else count - len(found)
        limit = PAGE if wanted is None else min(PAGE, wanted)
        page = await client.call(method, params.model_copy(update={"limit": limit}))
        some, cursor = rows(page)
        for row in some:
            if stop is not None and stop(row):
                return found
            if keep is None or keep(row):
                found.append(row)
        if cursor is None:
            break
        params = params.model_copy(update={"cursor": cursor})
    return found[:count]
