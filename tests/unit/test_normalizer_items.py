"""The event order of PROTOCOL.md section 6, whatever Codex says: items."""

import pytest

from adapter.runtime.events import ItemClosed, ItemDelta, ItemOpened
from tests.support import codex_says as says
from tests.support.codex_says import THREAD, Raw
from tests.support.told import Codex, closed
from transport.protocol.events import DeltaChannel
from transport.protocol.items import Command, ItemStatus, Reasoning


def test_a_command_goes_on_when_its_turn_has_completed() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command(processId="7"))
    codex.ends()
    assert codex.busy()
    codex.begins("t2")
    codex.says("item/commandExecution/outputDelta", **says.delta("call_1", "tick"))
    codex.item("completed", says.command(status="completed", exitCode=0))
    last = closed(codex)[-1]
    assert (last.turn_id, last.background) == ("t1", True)
    codex.ends(turn="t2")
    assert not codex.busy()


def test_a_half_message_of_a_completed_turn_is_ended() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.message())
    codex.ends()
    assert "end msg_1 interrupted" in codex.told
    assert not codex.busy()


def test_a_command_of_an_interrupted_turn_keeps_the_writer_until_it_ends() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command(processId="7"))
    codex.ends("interrupted")
    assert "notice stillRunning" in codex.told
    assert codex.busy()
    before = len(codex.events)
    codex.says("item/commandExecution/outputDelta", **says.delta("call_1", "late"))
    codex.item("completed", says.command(status="completed"))
    assert codex.events[before:] == []
    assert not codex.busy()


def test_a_command_that_was_approved_and_printed_something_runs_on_too() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command())  # it waited: no process yet
    codex.says("item/commandExecution/outputDelta", **says.delta("call_1", "tick"))
    codex.ends("interrupted")
    assert codex.busy()


def test_a_command_that_never_ran_does_not_keep_the_writer() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command())
    codex.ends("interrupted")
    assert "notice stillRunning" not in codex.told
    assert not codex.busy()


def test_an_item_that_ends_without_a_beginning_is_begun_first() -> None:
    codex = Codex()
    codex.begins()
    codex.item("completed", says.message(text="whole"))
    assert codex.told[-2:] == ["begin msg_1", "end msg_1 completed"]


def test_an_item_ends_once() -> None:
    codex = Codex()
    codex.begins()
    codex.item("completed", says.message(text="whole"))
    codex.item("completed", says.message(text="whole"))
    assert codex.told.count("end msg_1 completed") == 1


def test_an_item_of_an_unknown_turn_beside_a_running_one_is_in_the_background() -> None:
    codex = Codex()
    codex.begins()
    codex.item("completed", says.command(status="completed"), turn="long-ago")
    assert codex.told.count("turn/started") == 1
    assert closed(codex)[-1].background is True


def test_an_end_of_unknown_shape_still_ends_the_item() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.message())
    codex.says("item/agentMessage/delta", **says.delta("msg_1", "so far"))
    codex.item("completed", {**says.message(), "text": None})
    last = closed(codex)[-1]
    assert (last.status, last.text) == (ItemStatus.OTHER, "so far")


def test_reasoning_keeps_its_parts_apart() -> None:
    codex = Codex()
    codex.begins()
    raw: Raw = {"type": "reasoning", "id": "rs", "summary": [], "content": []}
    codex.item("started", raw)
    for part, words in ((0, "first"), (1, "second")):
        said = says.delta("rs", words, summaryIndex=part)
        codex.says("item/reasoning/summaryTextDelta", **said)
    codex.says("item/reasoning/textDelta", **says.delta("rs", "raw", contentIndex=0))
    deltas = [event for event in codex.events if isinstance(event, ItemDelta)]
    assert [(d.channel, d.part) for d in deltas] == [
        (DeltaChannel.SUMMARY, 0),
        (DeltaChannel.SUMMARY, 1),
        (DeltaChannel.REASONING, 0),
    ]
    item = codex.normalizer.item(THREAD, "rs")
    assert isinstance(item, Reasoning)
    assert (item.summary, item.text) == (["first\n\nsecond"], "raw")


def test_a_flood_of_output_is_held_as_head_and_tail_with_its_true_size() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command())
    for number in range(1000):
        line = f"{number:>9}\n" * 100
        codex.says("item/commandExecution/outputDelta", **says.delta("call_1", line))
    item = codex.normalizer.item(THREAD, "call_1")
    assert isinstance(item, Command)
    assert item.output_bytes == 1_000_000
    assert len(item.output.encode()) <= 64 * 1024
    assert item.output.startswith("        0\n")
    assert item.output.endswith("      999\n")
    assert item.truncated == ["output"]
    assert item.sizes == {"output": 1_000_000}


def test_a_huge_delta_is_told_in_parts_of_whole_characters() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.message())
    text = "ä" * 100_000
    codex.says("item/agentMessage/delta", **says.delta("msg_1", text))
    deltas = [event.text for event in codex.events if isinstance(event, ItemDelta)]
    assert "".join(deltas) == text
    assert max(len(part.encode()) for part in deltas) <= 32 * 1024


def test_a_provider_s_strange_item_id_becomes_a_legal_one_everywhere() -> None:
    codex = Codex()
    codex.begins()
    strange = "message with spaces"
    codex.item("started", says.message(strange))
    codex.says("item/agentMessage/delta", **says.delta(strange, "x"))
    codex.item("completed", says.message(strange, text="x"))
    ids = {e.item.id for e in codex.events if isinstance(e, ItemOpened | ItemClosed)}
    ids |= {e.item_id for e in codex.events if isinstance(e, ItemDelta)}
    assert len(ids) == 1
    assert " " not in ids.pop()


def test_a_text_that_utf_8_cannot_hold_is_told_all_the_same() -> None:
    codex = Codex()
    codex.begins()
    codex.item("completed", says.message(text="a\ud800b"))
    assert closed(codex)[-1].text == "a?b"


@pytest.mark.parametrize("mode", ["legacy", None])  # old versions do not name it
def test_a_legacy_thread_s_live_ids_are_not_its_history_s(mode: str | None) -> None:
    codex = Codex(historyMode=mode)
    codex.begins()
    codex.item("completed", says.message(text="x"))
    assert closed(codex)[-1].stable_id is False
