"""Pictures and mentions through the command line, an Agent and codex, all real."""

import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from clients.cli.demo_stage import Stage, open_stage
from clients.cli.exits import ExitCode
from tests.support.cli_runs import paper
from tests.support.pictures import png

pytestmark = [pytest.mark.codex, pytest.mark.usefixtures("warm_actors")]


@asynccontextmanager
async def paired() -> AsyncGenerator[Stage]:
    """An Agent at the desk, and a phone that may read and write."""
    with trio.fail_after(240):
        async with (
            open_stage(paper(), []) as built,
            built.desk.start("serve", "--tcp", "127.0.0.1:0") as serving,
        ):
            await serving.wait_line("^ready")
            async with built.desk.start("pair", "--yes") as offering:
                text = (await offering.wait_line("^TGATE:.*"))[0]
                await built.phone.run("connect", "--name", "phone", stdin=text.encode())
                found = await offering.wait_line(r"Paired: phone \((\w+)\) with read\.")
                await offering.end()
            await built.desk.run(
                "devices", "grant", found[1][:6], "--scopes", "read,write"
            )
            await built.desk.run("new", "--cwd", str(built.workspace), "Hello.")
            built.model.requests.clear()  # the folder is a root now
            yield built


def last_input(built: Stage) -> str:
    return json.dumps(built.model.requests[-1].body["input"])


async def test_a_message_with_a_picture_and_a_mention_is_sent_and_repeated_once(
    tmp_path: Path,
) -> None:
    picture = tmp_path / "crumb of a loaf.png"
    picture.write_bytes(png(31, 7))
    async with paired() as built:
        (built.workspace / "notes").mkdir()
        (built.workspace / "notes" / "rye.md").write_text("rye\n")
        words = (
            *("new", "--cwd", str(built.workspace), "What is this?", "--no-follow"),
            *("--image", str(picture), "--mention", "notes/rye.md"),
            *("--key", "cli-inputs-0123456789"),
        )
        first = await built.phone.run(*words)
        assert await built.phone.run(*words) == first  # the same key, uploaded again
        thread = first.split()[2]
        while "What is this?" not in await built.phone.run("read", thread):
            pass
        assert len(built.model.requests) == 1
        sent = base64.b64encode(png(31, 7)).decode()
        assert f"data:image/png;base64,{sent}" in last_input(built)
        assert "Mentioned file: notes/rye.md" in last_input(built)


async def test_a_file_that_is_no_picture_or_not_there_is_said_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    (tmp_path / "notes.txt").write_text("no picture")
    async with paired() as built:
        words = ("new", "--cwd", str(built.workspace), "Hm.")
        for extra, code, said in (
            (("--image", str(tmp_path / "notes.txt")), ExitCode.USAGE, "no PNG, JPEG"),
            (("--image", str(tmp_path / "none.png")), ExitCode.USAGE, "cannot be read"),
            (("--mention", "../x"), ExitCode.FAILED, "mention"),
            (("--mention", "none.md"), ExitCode.FAILED, "links are not followed"),
        ):
            assert said in await built.phone.run(*words, *extra, expect=code)
        assert built.model.requests == []


async def test_pictures_of_a_thread_are_saved_and_take_no_file_s_place(
    tmp_path: Path,
) -> None:
    async with paired() as built:
        loaf = built.workspace / "loaf.png"
        loaf.write_bytes(png(9, 9) + b"x" * 150_000)
        call = {"call": "view_image", "args": {"path": str(loaf)}}
        script = "SCRIPT:" + json.dumps([[call], [{"msg": "A loaf."}]])
        started = await built.phone.run("new", "--cwd", str(built.workspace), script)
        thread = started.split("new thread ")[1].split()[0]
        folder = tmp_path / "got"
        for _ in range(2):
            await built.phone.run("read", thread, "--images", str(folder))
        assert sorted(path.name for path in folder.iterdir()) == [
            "loaf-2.png",
            "loaf.png",
        ]
        assert (folder / "loaf.png").read_bytes() == loaf.read_bytes()
        shown = await built.phone.run("read", thread)
        picture = "img_" + shown.split("img_")[1].split()[0]
        file = tmp_path / "one.png"
        await built.phone.run("save", picture, str(file))
        assert file.read_bytes() == loaf.read_bytes()
        refused = await built.phone.run(
            "save", picture, str(file), expect=ExitCode.USAGE
        )
        assert "is there already" in refused
        loaf.unlink()
        gone = await built.phone.run(
            "save", picture, str(tmp_path / "two.png"), expect=ExitCode.FAILED
        )
        assert "not in the thread's folder" in gone
        assert not (tmp_path / "two.png").exists()
