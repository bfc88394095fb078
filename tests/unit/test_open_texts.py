"""An item in progress, for whoever comes late: with its text so far, cut to size."""

import pytest

from agent.events.open_items import OpenItem
from tests.support import cli_work as work
from transport.protocol.events import DeltaChannel
from transport.protocol.items import Item, ItemStatus, Plan, ToolCall


def opened(item: Item) -> OpenItem:
    return OpenItem(ref=1, seq=1, thread_id="t", root_thread_id=None, item=item)


def test_a_plan_has_grown_by_its_deltas() -> None:
    item = opened(work.plan("", ItemStatus.IN_PROGRESS))
    item.add(DeltaChannel.PLAN, 0, "# Plan\n")
    item.add(DeltaChannel.PLAN, 0, "- look")
    now = item.now()
    assert isinstance(now, Plan)
    assert now.text == "# Plan\n- look"


@pytest.mark.parametrize("limit", [4096, 256, 0])
def test_a_tool_s_arguments_are_cut_where_there_is_no_room(limit: int) -> None:
    called = work.tool(ItemStatus.IN_PROGRESS, arguments="x" * 50_000, result=None)
    now = opened(called).now(limit)
    assert isinstance(now, ToolCall)
    assert len(now.arguments or "") <= limit
    assert now.truncated == ["arguments"]
