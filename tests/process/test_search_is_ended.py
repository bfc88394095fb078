"""A search for files that nobody waits for any more is ended at Codex."""

from functools import partial
from pathlib import Path
from typing import Any

import trio

from tests.support.fake_app_server import place_fake, sent
from tests.support.runtimes import open_codex_runtime

SEARCH = "fuzzyFileSearch"


async def test_a_search_that_is_cancelled_is_ended_by_its_token(folder: Path) -> None:
    found: list[Any] = [{"result": {"files": []}}]
    codex = place_fake(folder / "bin", {"on": {SEARCH: [[], found]}})
    (folder / "home").mkdir()
    with trio.fail_after(240):
        async with open_codex_runtime(codex, folder / "home") as run:
            find_files = partial(run.reader.contents.find_files, "x", folder="/w")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(find_files)
                while not searches(folder):  # noqa: ASYNC110 - another process's file
                    await trio.sleep(0.02)
                nursery.cancel_scope.cancel()
            first, last = searches(folder)
            assert first["roots"] == ["/w"]
            assert last["roots"] == []
            assert first["cancellationToken"] == last["cancellationToken"]


def searches(folder: Path) -> list[dict[str, Any]]:
    """Return the params of the searches that it was sent."""
    calls = sent(folder / "bin")
    return [call["params"] for call in calls if call.get("method") == SEARCH]
