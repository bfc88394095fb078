"""What devices and threads can make the Agent hold or say is bounded; one past it is seen."""

import json
import os
from pathlib import Path
from typing import Any, cast

import pytest

from adapter.runtime.events import Emitted, ItemClosed
from adapter.runtime.store import HeldText
from agent.access.sight import Sight
from agent.app_servers.lease import Lease
from agent.approvals.decided import Decided
from agent.edge_limits import (
    DEVICE_NAME,
    INVALID_REQUESTS,
    INVALID_S,
    JOURNAL_BYTES,
    KEPT_TEXT,
)
from agent.events.journal import Journal
from agent.files.pictures import Pictures
from agent.following.follow import Told
from agent.following.told_threads import ToldThreads
from agent.gate import proctable_linux
from agent.gate.binary_versions import Versions
from agent.limits import (
    CHILDREN,
    DIFF_BYTES,
    DIFF_FILES,
    FULL_TURNS,
    OUTPUT_CACHE,
    OUTPUT_ENTRY,
    OUTPUT_TEXT,
    PAGE_BYTES,
    PICTURE_THREADS,
    QUEUE_PREVIEW,
    RESOLVED_BYTES,
    RESOLVED_KEPT,
    SCHEMA_BYTES,
    TEXT_INPUT,
    THREADS_PLACED,
    TOLD_THREADS,
    TURN_BLOB_BYTES,
    TURNS_TOLD,
    UNSAVED,
)
from agent.mutations import inputs
from agent.mutations.sizes import check_schema, check_size
from agent.pairing.device_records import plain_name
from agent.queue.queue_book import preview_of
from agent.reading.diffs import joined
from agent.reading.output_cache import OutputCache
from agent.reading.pages import fitting
from agent.records.unsaved import Unsaved
from agent.sessions.requests import InvalidCount
from tests.support.journals import delta, opened
from transport.errors import TooLarge
from transport.protocol.events import TurnStarted
from transport.protocol.gateway import LeaseState
from transport.protocol.items import (
    AgentMessage,
    ChangeKind,
    FileChange,
    FileDiff,
    ItemStatus,
)
from transport.protocol.threads import Thread, ThreadMode, ThreadStatus
from transport.protocol.turns import TextInput, Turn, TurnStatus
from transport.protocol.work_items import Image, ImageOrigin


def private(one: object, name: str) -> Any:
    """Look inside: what is bounded is not meant to be seen."""
    return getattr(one, name)


def message(item_id: str, text: str = "", turn_id: str = "t") -> AgentMessage:
    return AgentMessage(
        id=item_id, turn_id=turn_id, status=ItemStatus.COMPLETED, text=text
    )


# What a device sends


def test_a_message_and_a_schema_may_be_so_large() -> None:
    def check(size: int) -> None:
        check_size([TextInput(type="text", text="x" * (size - 1)), words("y")])

    check(TEXT_INPUT)
    with pytest.raises(TooLarge) as refused:
        check(TEXT_INPUT + 1)
    assert refused.value.data == {"field": "input", "limit": TEXT_INPUT}
    check_schema({"x": "y" * (SCHEMA_BYTES - len('{"x": ""}'))})
    with pytest.raises(TooLarge) as refused:
        check_schema({"x": "y" * SCHEMA_BYTES})
    assert refused.value.data == {"field": "outputSchema", "limit": SCHEMA_BYTES}


def words(text: str) -> TextInput:
    return TextInput(type="text", text=text)


def test_the_pictures_of_a_message_may_be_so_large_in_all() -> None:
    check = private(inputs, "_check_pictures")
    check(TURN_BLOB_BYTES)
    with pytest.raises(TooLarge) as refused:
        check(TURN_BLOB_BYTES + 1)
    assert refused.value.data == {"field": "input", "limit": TURN_BLOB_BYTES}


def test_so_much_nonsense_in_a_minute_is_no_client_of_ours() -> None:
    quick, slow = InvalidCount(), InvalidCount()
    assert [quick.add(0.0) for _ in range(INVALID_REQUESTS)].index(True) == (
        INVALID_REQUESTS - 1
    )
    pause = INVALID_S / (INVALID_REQUESTS - 1) + 0.001
    assert not any(slow.add(number * pause) for number in range(10 * INVALID_REQUESTS))


def test_a_device_s_name_and_a_message_that_waits_are_shown_short() -> None:
    assert plain_name(b"x" * DEVICE_NAME) == "x" * DEVICE_NAME
    assert len(plain_name(b"x" * (DEVICE_NAME + 1))) == DEVICE_NAME

    def preview(size: int) -> str:
        return preview_of(json.dumps({"input": [{"text": "x" * size}]}))

    assert preview(QUEUE_PREVIEW) == "x" * QUEUE_PREVIEW
    assert len(preview(QUEUE_PREVIEW + 1)) == QUEUE_PREVIEW
    assert preview(QUEUE_PREVIEW + 1).endswith("…")


# What happens in threads


def test_the_ring_is_bounded_in_bytes() -> None:
    journal = Journal()
    journal.append(opened("th", "i"))
    text = "x" * KEPT_TEXT
    for _ in range(JOURNAL_BYTES // KEPT_TEXT + 10):
        journal.append(delta("th", "i", text))
        assert journal.bytes <= JOURNAL_BYTES
    assert journal.bytes > 0.8 * JOURNAL_BYTES


def closed(item_id: str, text: str) -> ItemClosed:
    data = text.encode()
    item = message(item_id, text[:9])
    item = item.model_copy(update={"truncated": ["text"], "sizes": {"text": len(data)}})
    whole = {("text", ""): HeldText(data=data, total=len(data))}
    return ItemClosed(at=1, thread_id="th", item=item, whole=cast("Any", whole))


def test_whole_texts_are_kept_up_to_a_size_each_and_in_all() -> None:
    cache = OutputCache()
    text = "x" * (OUTPUT_TEXT + 1)
    most = OUTPUT_CACHE // (OUTPUT_TEXT + OUTPUT_ENTRY)
    for number in range(most + 1):
        cache.take(closed(f"i{number}", text))
        assert cache.bytes <= OUTPUT_CACHE
    assert len(cache) == most
    assert cache.texts("th", "i0") is None
    kept = cache.texts("th", f"i{most}")
    assert kept is not None
    assert [len(one.data) for one in kept.values()] == [OUTPUT_TEXT]


def test_items_without_texts_cost_something_too() -> None:
    cache = OutputCache(most=10 * OUTPUT_ENTRY)
    for number in range(11):
        cache.take(closed(f"i{number}", ""))
    assert len(cache) == 10


def test_a_page_has_so_many_bytes() -> None:
    rows = [message(f"i{number:02}", "x" * 100 * 1024) for number in range(9)]
    page = rows[: fitting(rows)]
    assert sum(len(one.text) for one in page) <= PAGE_BYTES
    assert sum(len(one.text) for one in rows[: len(page) + 1]) > PAGE_BYTES


def change(path: str, size: int) -> FileChange:
    file = FileDiff(
        path=path, change=ChangeKind.UPDATE, diff="+" * size, added=1, removed=0
    )
    return FileChange(
        id="i", turn_id="t", status=ItemStatus.COMPLETED, changes=[file], files=1
    )


def test_a_diff_has_so_many_bytes_and_names_so_many_files() -> None:
    text, _, cut = joined([change(f"/{n}", 1_000) for n in range(DIFF_BYTES // 1_000)])
    assert cut
    assert len(text.encode()) <= DIFF_BYTES
    _, files, cut = joined([change(f"/{n}", 1) for n in range(DIFF_FILES + 1)])
    assert cut
    assert [files[0].path, len(files)] == ["/1", DIFF_FILES]


def test_of_a_followed_thread_the_newest_turns_are_remembered() -> None:
    told = Told("th")
    for number in range(TURNS_TOLD + 1):
        turn = Turn(id=f"t{number}", thread_id="th", status=TurnStatus.IN_PROGRESS)
        told.note(Emitted(at=1, thread_id="th", data=TurnStarted(turn=turn)))
        item = message(f"i{number}", turn_id=turn.id)
        told.note(ItemClosed(at=1, thread_id="th", item=item))
    assert list(told.turns) == [f"t{number}" for number in range(1, TURNS_TOLD + 1)]
    turns = [told.turns.get(turn_id) for turn_id in told.turns]
    with_items = [one for one in turns if one is not None and one.items is not None]
    assert len(with_items) == FULL_TURNS


def test_so_many_threads_are_remembered_with_what_was_told() -> None:
    told = ToldThreads()
    for number in range(TOLD_THREADS + 1):
        told.keep(Told(f"th{number}"))
    assert (len(told), "th0" in told) == (TOLD_THREADS, False)


def test_a_lease_has_so_many_sub_agents() -> None:
    lease = Lease("th", "th")
    for number in range(CHILDREN + 1):
        lease.meet(f"c{number}")
    assert len(lease.children) == CHILDREN


def thread(thread_id: str) -> Thread:
    return Thread(
        id=thread_id,
        preview="",
        cwd="/work",
        source="cli",
        status=ThreadStatus.IDLE,
        mode=ThreadMode.STILL,
        lease=LeaseState.NONE,
        created_at=1,
        updated_at=1,
    )


def test_folders_of_so_many_threads_are_remembered() -> None:
    class NoRoots:
        def learn(self, folders: Any) -> None: ...

    nothing = cast("Any", NoRoots())
    sight = Sight(supervisor=nothing, leases=nothing, roots=nothing, now_ms=lambda: 0)
    for number in range(THREADS_PLACED + 1):
        sight.learn([thread(f"t{number}")])
    placed = private(sight, "_cwds")
    assert len(placed) == THREADS_PLACED
    assert "t0" not in placed


class Ended:
    """An approval as far as it is weighed."""

    def __init__(self, approval_id: str, size: int) -> None:
        self.id = approval_id
        self.size = size

    def model_dump_json(self) -> str:
        return "x" * self.size


@pytest.mark.parametrize(
    ("size", "most"),
    [(1, RESOLVED_KEPT), (RESOLVED_BYTES // 10, 10)],
    ids=["number", "bytes"],
)
def test_approvals_that_ended_are_remembered_by_number_and_by_size(
    size: int, most: int
) -> None:
    decided = Decided()
    for number in range(most + 1):
        decided.keep(cast("Any", Ended(f"a{number}", size)))
    assert (len(decided), decided.get("a0")) == (most, None)


def test_a_picture_is_known_by_the_newest_threads_that_have_it() -> None:
    nothing = cast("Any", None)
    pictures = Pictures(
        blobs=nothing, sight=nothing, codex_home=Path("/h"), private=nothing
    )
    item = Image(
        id="i",
        turn_id="t",
        status=ItemStatus.COMPLETED,
        origin=ImageOrigin.VIEWED,
        blob_id="b",
        path="/a.png",
    )
    for number in range(PICTURE_THREADS + 1):
        pictures.learn(f"th{number}", [item])
    (known,) = private(pictures, "_known").values()
    assert list(known.threads) == [f"th{n}" for n in range(1, PICTURE_THREADS + 1)]


def test_outcomes_that_wait_for_a_full_disk_are_bounded() -> None:
    waiting = Unsaved(cast("Any", None), run=cast("Any", None))
    for number in range(UNSAVED + 1):
        waiting.keep(("d", f"k{number}"), None)
    assert (len(waiting), ("d", "k0") in waiting) == (UNSAVED, False)


# What runs beside us


def binary_of(pid: int) -> tuple[int, int, int]:
    return (1, pid, 1)


async def test_so_many_binaries_are_remembered_by_their_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent.gate.binary_versions.VERSIONS_KEPT", 3)

    async def no_codex(_path: object) -> object:
        return "an answer"

    monkeypatch.setattr("agent.gate.binary_versions._asked", no_codex)

    class Table:
        def running_file(self, pid: int) -> Path:
            return Path(f"/bin/{pid}")

    versions = Versions(cast("Any", Table()))
    monkeypatch.setattr(versions, "_binary", binary_of, raising=False)
    for pid in range(5):
        assert versions.of(pid) is None
        await versions.ask()
    assert [pid for pid in range(5) if versions.of(pid)] == [2, 3, 4]


def test_so_many_parents_of_a_process_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.gate.proctable_linux.ANCESTORS", 1)

    class Own:
        parent = os.getpid()

    line = proctable_linux.ancestors(cast("Any", Own()))
    assert [one.pid for one in line] == [os.getpid()]
