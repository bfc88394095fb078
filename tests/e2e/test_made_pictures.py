"""A picture that the real codex makes is told with its turn, and fetched from afar."""

import pytest
import trio

from clients.cli.scripted_answers import Rule
from tests.support.agents import client_info, pair_device
from tests.support.codex import codex_binaries, each_version, open_codex_home
from tests.support.foreign import open_foreign
from tests.support.pictures import png
from tests.support.real_agent import (
    open_local,
    open_real_agent,
    send_to_end,
    thread_ids,
)
from tests.support.signed_in import sign_in
from transport.blobs import fetch_blob
from transport.client import Client, open_client
from transport.errors import NotFound
from transport.protocol.items import Image, ItemStatus
from transport.protocol.methods import THREAD_READ
from transport.protocol.threads import ThreadReadParams
from transport.protocol.work_items import ImageOrigin

pytestmark = pytest.mark.codex
DRAW = {"call": "imagegen", "namespace": "image_gen", "args": {"prompt": "a loaf"}}
RULES = (Rule("Draw a loaf.", [[DRAW], [{"msg": "Here it is."}]]),)
MOST = 1024 * 1024


async def made(client: Client, thread: str) -> Image:
    """Return the picture of the thread's newest turn."""
    read = await client.call(THREAD_READ, ThreadReadParams(thread_id=thread))
    (found,) = (one for one in read.turns[0].items or () if isinstance(one, Image))
    return found


@each_version
async def test_a_picture_that_codex_made_is_fetched_by_who_sees_its_thread(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            home.model.picture = png(99, 7) + b"x" * 100_000
            sign_in(home.home, home.model)
            async with open_foreign(codex_binaries()[version], home.environ) as other:
                thread = await other.start_thread(home.workspace, "hello")
            async with (
                open_real_agent(home, version=version) as house,
                open_local(house) as local,
            ):
                turn = await send_to_end(local, thread, "Draw a loaf.", key="draw")
                assert turn.error is None
                assert await thread_ids(local) == [thread]
                phone = await pair_device(house, scopes=("read",))
                async with open_client(house.target(phone), client_info()) as client:
                    picture = await made(client, thread)
                    assert picture.origin is ImageOrigin.MADE
                    assert picture.status is ItemStatus.COMPLETED
                    assert picture.prompt == "a loaf"
                    blob = picture.blob_id or ""
                    whole = await fetch_blob(client, blob, most=MOST)
                    assert whole == home.model.picture
                other_folder = home.home.parent / "elsewhere"
                other_folder.mkdir()
                blind = await pair_device(
                    house, scopes=("read",), only=[other_folder], name="blind"
                )
                async with open_client(house.target(blind), client_info()) as client:
                    with pytest.raises(NotFound):
                        await fetch_blob(client, blob, most=MOST)
            # another Agent reads of it in history, under the same id
            async with (
                open_real_agent(home, version=version) as house,
                open_local(house) as local,
            ):
                assert (await made(local, thread)).blob_id == blob
                assert await fetch_blob(local, blob, most=MOST) == home.model.picture
