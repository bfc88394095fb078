"""Which pictures of threads are read back, and which are not."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from trio.testing import MockClock

from adapter.runtime.events import Emitted, ItemClosed
from agent.access.scopes import Caller
from agent.limits import PICTURE_BYTES, PICTURES_KNOWN
from tests.support.door import LOCAL, House, device, open_house
from tests.support.fake_threads import AT, make_turn
from tests.support.pictures import png
from transport.errors import Forbidden, NotFound, TooLarge
from transport.protocol.blobs import BlobReadParams, BlobReadResult
from transport.protocol.events import TurnCompleted
from transport.protocol.items import Image, ItemStatus
from transport.protocol.turns import TurnStatus
from transport.protocol.work_items import ImageOrigin

MADE, VIEWED = ImageOrigin.MADE, ImageOrigin.VIEWED


def image(path: Path, origin: ImageOrigin = VIEWED, *, blob_id: str = "img_1") -> Image:
    return Image(
        id="i1",
        turn_id="t1",
        status=ItemStatus.COMPLETED,
        origin=origin,
        blob_id=blob_id,
        path=str(path),
    )


@asynccontextmanager
async def house(tmp_path: Path, cwd: Path | None = None) -> AsyncGenerator[House]:
    """A thread in `work`, beside the homes of Codex and of the Agent."""
    (tmp_path / "work").mkdir()
    (tmp_path / "state" / "codex" / "generated_images" / "thr").mkdir(parents=True)
    async with open_house(tmp_path / "state") as built:
        built.runtime.add("thr", "t1", cwd=str(cwd or tmp_path / "work"))
        yield built


async def read(
    built: House, item: Image, caller: Caller = LOCAL, *, offset: int = 0
) -> BlobReadResult:
    built.door.pictures.learn("thr", [item])
    params = BlobReadParams(blob_id=item.blob_id or "", offset=offset, limit=1_000_000)
    return await built.door.pictures.read(caller, params)


async def test_a_picture_in_the_threads_folder_is_read_in_pieces(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with house(tmp_path) as built:
        file = tmp_path / "work" / "a.png"
        file.write_bytes(png() + bytes(100_000))
        first = await read(built, image(file))
        assert len(first.content) == 65_536
        assert not first.eof
        second = await read(built, image(file), offset=65_536)
        assert second.eof
        assert first.content + second.content == file.read_bytes()
        beyond = await read(built, image(file), offset=10**9)
        assert (beyond.content, beyond.eof) == (b"", True)


async def test_a_picture_that_codex_made_is_read_where_codex_keeps_those(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with house(tmp_path) as built:
        file = tmp_path / "state" / "codex" / "generated_images" / "thr" / "a.png"
        file.write_bytes(png())
        assert (await read(built, image(file, MADE))).content == png()
        with pytest.raises(NotFound):  # looked at only: an item may name any path
            await read(built, image(file, VIEWED, blob_id="img_2"))


@pytest.mark.parametrize("origin", [MADE, VIEWED])
@pytest.mark.parametrize(
    "place",
    [
        "state/codex/own.png",
        "state/codex/sessions/own.png",
        "out.png",
        "state/codex/generated_images/../own.png",
        "work/../out.png",
        "work/link.png",
        "work/linked/out.png",
        "workbench/out.png",
    ],
)
async def test_nothing_else_is_read(
    place: str, origin: ImageOrigin, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with house(tmp_path) as built:
        for folder in ("state/codex/sessions", "workbench"):
            (tmp_path / folder).mkdir()
        (tmp_path / "out.png").write_bytes(png())
        (tmp_path / "work" / "link.png").symlink_to(tmp_path / "out.png")
        (tmp_path / "work" / "linked").symlink_to(tmp_path)
        named = Path(f"{tmp_path}/{place}")
        if not named.exists():
            named.write_bytes(png())
        item = image(named, origin).model_copy(update={"path": f"{tmp_path}/{place}"})
        with pytest.raises(NotFound):
            await read(built, item)


@pytest.mark.parametrize(
    "place", ["codex/own.png", "uploads/local/x.png", "identity.png"]
)
async def test_a_thread_in_a_folder_with_the_homes_in_it_shows_nothing_of_them(
    place: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with house(tmp_path, cwd=tmp_path) as built:
        file = tmp_path / "state" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(png())
        with pytest.raises(NotFound):
            await read(built, image(file))
        (tmp_path / "fine.png").write_bytes(png())
        fine = await read(built, image(tmp_path / "fine.png", blob_id="img_2"))
        assert fine.eof


async def test_what_is_no_picture_or_too_large_is_not_read(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with house(tmp_path) as built:
        file = tmp_path / "work" / ".env"
        file.write_text("SECRET=1")
        with pytest.raises(NotFound):
            await read(built, image(file))
        with file.open("wb") as out:
            out.write(png())
            out.truncate(PICTURE_BYTES + 1)
        with pytest.raises(TooLarge):
            await read(built, image(file))


async def test_who_does_not_see_the_thread_does_not_see_its_pictures(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with house(tmp_path) as built:
        file = tmp_path / "work" / "a.png"
        file.write_bytes(png())
        inside = device("read", roots=[str(tmp_path / "work")])
        assert (await read(built, image(file), inside)).content == png()
        with pytest.raises(NotFound):
            await read(built, image(file), device("read", roots=[str(tmp_path / "x")]))
        with pytest.raises(Forbidden):
            await read(built, image(file), device("write", roots=[str(tmp_path)]))


async def test_a_picture_is_known_by_a_turn_of_any_thread_that_has_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with house(tmp_path) as built:
        file = tmp_path / "work" / "a.png"
        file.write_bytes(png())
        pictures, params = built.door.pictures, BlobReadParams(blob_id="img_1")
        with pytest.raises(NotFound):
            await pictures.read(LOCAL, params)
        turn = make_turn("t1", "thr", TurnStatus.COMPLETED)
        whole = turn.model_copy(update={"items": [image(file)]})
        told = Emitted(at=AT, thread_id="thr", data=TurnCompleted(turn=whole))
        pictures.hear(told)
        pictures.hear(ItemClosed(at=AT, thread_id="gone", item=image(file)))
        assert (await pictures.read(LOCAL, params)).content == png()


async def test_only_so_many_pictures_are_remembered(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with house(tmp_path) as built:
        file = tmp_path / "work" / "a.png"
        file.write_bytes(png())
        items = [image(file, blob_id=f"img_{n}") for n in range(PICTURES_KNOWN + 1)]
        built.door.pictures.learn("thr", items)
        with pytest.raises(NotFound):
            params = BlobReadParams(blob_id="img_0")
            await built.door.pictures.read(LOCAL, params)
        params = BlobReadParams(blob_id=f"img_{PICTURES_KNOWN}")
        assert (await built.door.pictures.read(LOCAL, params)).eof


async def test_a_worktree_of_codex_s_app_is_a_folder_like_any_other(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    tree = tmp_path / "state" / "codex" / "worktrees" / "a1" / "shop"
    async with house(tmp_path, cwd=tree) as built:
        tree.mkdir(parents=True)
        (tree / "a.png").write_bytes(png())
        assert (await read(built, image(tree / "a.png"))).content == png()
