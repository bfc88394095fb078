"""The other side of the two-writer tests works, with every codex that is here."""

import pytest
import trio

from tests.support.codex import codex_binaries, open_codex_home
from tests.support.foreign import open_foreign


@pytest.mark.parametrize("version", sorted(codex_binaries()))
async def test_a_foreign_codex_makes_a_thread_and_the_model_sees_it(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_codex_home() as home:
            codex = codex_binaries()[version]
            async with open_foreign(codex, home.environ) as foreign:
                thread = await foreign.start_thread(home.workspace, "from afar")
            assert thread
            assert home.model.requests[-1].user_texts[-1] == "from afar"
