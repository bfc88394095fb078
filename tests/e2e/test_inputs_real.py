"""Pictures and mentioned files reach the real codex's model; pictures come back."""

import base64
import json
from pathlib import Path

import pytest
import trio

from tests.support.agents import Device, House, client_info, pair_device
from tests.support.codex import CodexHome, locking_versions, open_codex_home
from tests.support.pictures import png
from tests.support.real_agent import open_real_agent
from transport.blobs import fetch_blob, send_blob
from transport.client import Client, EventSeen, Resumed, open_client
from transport.errors import InvalidParams, NotFound, Refusal
from transport.protocol import threads, turns
from transport.protocol.events import ItemCompleted, TurnCompleted
from transport.protocol.items import Image, Item, UserMessage
from transport.protocol.methods import THREAD_START, TURN_START
from transport.protocol.turns import ImageInput, MentionInput, TextInput, Turn
from transport.protocol.work_items import ImageOrigin

pytestmark = pytest.mark.codex
KEY = "inputs-0123456789abcdef-"
MOST = 1024 * 1024


async def run_turn(
    client: Client, call: "threads.ThreadStartParams | turns.TurnStartParams"
) -> Turn:
    """Start a turn and return it, with the items that were told, when it has ended."""
    items: list[Item] = []
    async with client.subscribe("all", deltas=False) as events:
        async for event in events:
            if isinstance(event, Resumed):
                break
        if isinstance(call, threads.ThreadStartParams):
            started = (await client.call(THREAD_START, call)).turn
        else:
            started = (await client.call(TURN_START, call)).sent
        async for event in events:
            match event:
                case EventSeen(data=ItemCompleted(item=item)):
                    items.append(item)
                case EventSeen(data=TurnCompleted(turn=turn)) if turn.id == started.id:
                    return turn.model_copy(update={"items": items})
                case _:
                    pass
    raise AssertionError("the subscription ended before the turn")


def asked(home: CodexHome) -> str:
    """Return the input of the model's last request, as JSON."""
    return json.dumps(home.model.requests[-1].body["input"])


async def paired(house: House, *scopes: str) -> Device:
    return await pair_device(house, scopes=scopes or ("read", "write"))


@pytest.mark.parametrize("version", locking_versions())
async def test_the_model_is_given_an_uploaded_picture_and_a_mentioned_file(
    version: str,
) -> None:
    picture = png(31, 7)
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=version) as house,
        ):
            (home.workspace / "src").mkdir()
            (home.workspace / "src" / "tide table.py").write_text("HIGH = 3\n")
            device = await paired(house)
            async with open_client(house.target(device), client_info()) as client:
                assert client.opened.limits.blob == 10 * MOST
                blob = await send_blob(client, picture, name="../../x/tides.png")
                first = threads.ThreadStartParams(
                    cwd=str(home.workspace),
                    input=[
                        TextInput(type="text", text="look at this"),
                        ImageInput(type="image", blob_id=blob),
                        MentionInput(type="mention", path="src/tide table.py"),
                    ],
                    request_key=KEY + "1",
                    wait_ms=20_000,
                )
                turn = await run_turn(client, first)
                url = "data:image/png;base64," + base64.b64encode(picture).decode()
                assert url in asked(home)
                assert "Mentioned file: src/tide table.py" in asked(home)
                message = next(i for i in turn.items or () if i.kind == "userMessage")
                assert isinstance(message, UserMessage)
                # 0.147 forgets a mention in its history; the text is always there
                assert message.attachments[0] == "uploaded picture"
                assert "Mentioned file: src/tide table.py" in message.text
                again = turns.TurnStartParams(
                    thread_id=turn.thread_id,
                    input=[ImageInput(type="image", blob_id=blob)],
                    request_key=KEY + "2",
                    wait_ms=20_000,
                )
                await run_turn(client, again)
                assert asked(home).count(url) == 2
                assert await fetch_blob(client, blob, most=MOST) == picture


@pytest.mark.parametrize("version", locking_versions())
async def test_what_is_not_there_starts_no_turn_and_leaves_no_thread(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=version) as house,
        ):
            device, other = (
                await paired(house),
                await pair_device(house, scopes=("read", "write"), name="other"),
            )
            async with open_client(house.target(other), client_info()) as client:
                foreign = await send_blob(client, png(), name="p")
            (home.workspace / "link").symlink_to(
                house.config.state_dir / "identity.key"
            )
            async with open_client(house.target(device), client_info()) as client:
                text = await send_blob(client, b"just text", name="notes.txt")
                cases: list[tuple[turns.InputPart, type[Refusal]]] = [
                    (ImageInput(type="image", blob_id=foreign), NotFound),
                    (ImageInput(type="image", blob_id="f" * 32), NotFound),
                    (ImageInput(type="image", blob_id="../../etc"), NotFound),
                    (ImageInput(type="image", blob_id=text), InvalidParams),
                    (MentionInput(type="mention", path="link"), InvalidParams),
                    (MentionInput(type="mention", path="none"), InvalidParams),
                ]
                for number, (part, refusal) in enumerate(cases):
                    params = threads.ThreadStartParams(
                        cwd=str(home.workspace),
                        input=[TextInput(type="text", text="x"), part],
                        request_key=f"{KEY}{number}",
                        wait_ms=20_000,
                    )
                    with pytest.raises(refusal):
                        await client.call(THREAD_START, params)
            assert home.model.requests == []
            assert not list((home.home / "sessions").rglob("*.jsonl"))


def view(*paths: Path) -> str:
    calls = [{"call": "view_image", "args": {"path": str(path)}} for path in paths]
    return "SCRIPT:" + json.dumps([calls, [{"msg": "seen"}]])


@pytest.mark.parametrize("version", locking_versions())
async def test_a_picture_that_the_model_looked_at_is_read_back_and_nothing_else(
    version: str, tmp_path: Path
) -> None:
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=version) as house,
        ):
            inside, outside = home.workspace / "in.png", tmp_path / "out.png"
            inside.write_bytes(png(99, 1) + b"x" * 100_000)
            outside.write_bytes(png())
            (home.home / "own.png").write_bytes(png())
            folder = home.workspace / "shots"
            folder.mkdir()
            (folder / "a.png").write_bytes(png())
            device = await paired(house)
            async with open_client(house.target(device), client_info()) as client:
                params = threads.ThreadStartParams(
                    cwd=str(home.workspace),
                    input=[
                        TextInput(
                            type="text",
                            text=view(
                                inside, outside, home.home / "own.png", folder / "a.png"
                            ),
                        )
                    ],
                    request_key=KEY + "1",
                    wait_ms=20_000,
                )
                turn = await run_turn(client, params)
                seen = [i for i in turn.items or () if isinstance(i, Image)]
                ids = {Path(i.path or "").name: i.blob_id or "" for i in seen}
                assert {i.origin for i in seen} == {ImageOrigin.VIEWED}
                whole = await fetch_blob(client, ids["in.png"], most=MOST)
                assert whole == inside.read_bytes()
                for name in ("out.png", "own.png"):
                    with pytest.raises(NotFound):
                        await fetch_blob(client, ids[name], most=MOST)
                assert await fetch_blob(client, ids["a.png"], most=MOST) == png()
                folder.rename(home.workspace / "moved")
                folder.symlink_to(tmp_path)
                (tmp_path / "a.png").write_bytes(png())
                with pytest.raises(NotFound):
                    await fetch_blob(client, ids["a.png"], most=MOST)
                inside.write_bytes(b"SECRET=1")  # what lies there is no picture now
                with pytest.raises(NotFound):
                    await fetch_blob(client, ids["in.png"], most=MOST)
            blind = await pair_device(
                house, scopes=("read",), only=[tmp_path], name="blind"
            )
            async with open_client(house.target(blind), client_info()) as client:
                with pytest.raises(NotFound):
                    await fetch_blob(client, ids["a.png"], most=MOST)
