"""The one helper that owns a nursery: what leaves it, and that nothing stays."""

import pytest
import trio

from transport.background import open_background


async def wait(*, task_status: trio.TaskStatus[None]) -> None:
    task_status.started()
    await trio.sleep_forever()


async def test_block_and_task_cancelled_together_are_one_cancellation() -> None:
    seen: list[BaseException] = []
    with trio.move_on_after(1) as scope:
        try:
            async with open_background(wait), open_background(wait):
                await trio.sleep_forever()
        except trio.Cancelled as exc:
            seen.append(exc)
            raise
    assert scope.cancelled_caught
    assert len(seen) == 1


async def test_the_tasks_error_leaves_the_block_plain() -> None:
    async def fail(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        raise ValueError("the task")

    with pytest.raises(ValueError, match="the task"):
        async with open_background(fail):
            await trio.sleep_forever()


async def test_an_error_beside_a_cancellation_is_not_lost() -> None:
    async def fail_at_the_end(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("while it was cancelled")

    with pytest.raises(ValueError, match="while it was cancelled"):
        with trio.move_on_after(1):
            async with open_background(fail_at_the_end):
                await trio.sleep_forever()
