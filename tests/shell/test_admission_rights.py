"""What a device may do through the door: its scopes, its ceiling, its folders, until it is revoked."""

from dataclasses import replace
from pathlib import Path

import pytest
from trio.testing import MockClock

from tests.support.door import (
    LOCAL,
    device,
    open_house,
    send,
)
from tests.support.mutations import OTHER_KEY, STEPS, new_thread, nothing_is_left
from transport.errors import (
    Forbidden,
    NotFound,
)


async def test_a_thread_left_wide_open_is_refused_to_a_narrower_device(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        for wider in (
            {"sandbox": "danger-full-access"},
            {"sandbox": "external-sandbox"},
            {"approval_policy": "never"},
            {"cwd": "/etc"},
        ):
            narrow = stored.settings
            stored.settings = replace(narrow, **wider)
            with pytest.raises(Forbidden) as caught:
                await house.door.admission.start_turn(device(), send())
            assert "ceiling" in caught.value.data
            await nothing_is_left(house, tmp_path)
            stored.settings = narrow
        await house.door.admission.start_turn(device(), send())


async def test_a_held_wide_open_thread_is_refused_to_a_narrower_device_too(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.settings = replace(stored.settings, sandbox="danger-full-access")
        await house.door.admission.start_turn(LOCAL, send())
        house.runtime.writers[0].finish_turn()
        with pytest.raises(Forbidden):
            await house.door.admission.start_turn(device(), send(key=OTHER_KEY))
        assert len(house.runtime.writers[0].sent) == 1


@pytest.mark.parametrize("step", STEPS[1:])
async def test_a_device_revoked_at_any_step_does_nothing(
    step: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        gone: list[str] = []
        caller = replace(device(), alive=lambda: not gone)
        house.runtime.at(step, lambda: gone.append("revoked"))
        with pytest.raises(Forbidden):
            await house.door.admission.start_turn(caller, send())
        await nothing_is_left(house, tmp_path)
        assert all(not writer.sent for writer in house.runtime.writers)


async def test_a_device_needs_the_scope_and_the_root(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1", cwd="/home/u/secret")
        with pytest.raises(Forbidden) as caught:
            await house.door.admission.start_turn(device("read"), send())
        assert caught.value.data["scope"] == "write"
        for thread_id in ("thr", "no-such-thread"):
            with pytest.raises(NotFound) as missing:
                await house.door.admission.start_turn(device(), send(thread_id))
            assert missing.value.data == {"kind": "thread", "id": thread_id}


async def test_a_device_starts_threads_only_within_its_ceiling(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    caller = device(roots=[str(inside)])
    async with open_house(tmp_path) as house:
        for params in (
            new_thread(str(outside)),
            new_thread(str(inside / "link")),
            new_thread(f"{inside}/../out"),
            new_thread(str(inside), sandbox="danger-full-access"),
            new_thread(str(inside), approval_policy="never"),
        ):
            with pytest.raises(Forbidden) as caught:
                await house.door.admission.start_thread(caller, params)
            assert "ceiling" in caught.value.data
        assert house.runtime.writers == []
        await house.door.admission.start_thread(caller, new_thread(str(inside)))


async def test_a_new_thread_whose_effective_settings_are_too_wide_is_dropped(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        caller = device(roots=[str(tmp_path)], sandbox="read-only")
        with pytest.raises(Forbidden):
            await house.door.admission.start_thread(caller, new_thread(str(tmp_path)))
        await nothing_is_left(house, tmp_path)
        assert house.runtime.threads == {}


async def test_a_device_that_follows_threads_may_use_their_folders_and_no_others(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    known, other = tmp_path / "known", tmp_path / "other"
    known.mkdir()
    other.mkdir()
    caller = replace(device(roots=[]), follows_threads=True)
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1", cwd=str(known))
        with pytest.raises(Forbidden):
            await house.door.admission.start_thread(caller, new_thread(str(other)))
        await house.door.admission.start_thread(caller, new_thread(str(known)))
