"""v2 objects with every value fixed, for what the command line shows."""

from clients.cli.clock import Clock
from transport.protocol.admin import DeviceRow, PairCandidate
from transport.protocol.gateway import (
    AgentInfo,
    Ceiling,
    FollowedThread,
    GatePosition,
    GateReason,
    GateState,
    GatewayStatus,
    LeaseInfo,
    LeaseState,
    RuntimePhase,
    RuntimeState,
    Writer,
    WriterKind,
)
from transport.protocol.items import (
    AgentMessage,
    ChangeKind,
    Command,
    FileChange,
    FileDiff,
    ItemStatus,
    OtherItem,
    Reasoning,
    UserMessage,
)
from transport.protocol.threads import (
    GitInfo,
    Thread,
    ThreadMode,
    ThreadSettings,
    ThreadStatus,
)
from transport.protocol.turns import Turn, TurnError, TurnStatus

NOON = 1_796_126_400_000  # 2026-12-01 12:00 UTC, ms
CLOCK = Clock(now=NOON)
SHOP = "019ad9a0-1111-7000-8000-000000000001"
BLOG = "019ad9a0-2222-7000-8000-000000000002"
DIFF = """\
@@ -1,2 +1,3 @@
 from shop import items
+from shop import cart
 items.show()
"""


def thread(
    thread_id: str = SHOP,
    *,
    title: str | None = "Add a cart page",
    status: ThreadStatus = ThreadStatus.IDLE,
    cwd: str = "/home/ann/shop",
    writer: Writer | None = None,
) -> Thread:
    """Return a thread, last changed three minutes ago."""
    return Thread(
        id=thread_id,
        title=title,
        preview="add a cart page, please",
        cwd=cwd,
        source="cli",
        status=status,
        mode=ThreadMode.STILL,
        lease=LeaseState.ELSEWHERE if writer else LeaseState.NONE,
        writer=writer,
        settings=ThreadSettings(
            sandbox="workspace-write", approval_policy="on-request"
        ),
        created_at=NOON - 3_600_000,
        updated_at=NOON - 180_000,
        git=GitInfo(branch="main"),
    )


def turn(
    turn_id: str = "turn-1",
    *,
    status: TurnStatus = TurnStatus.COMPLETED,
    error: TurnError | None = None,
    full: bool = False,
) -> Turn:
    """Return a turn of the shop thread; `full`: with one item of each kind."""
    ended = status is not TurnStatus.IN_PROGRESS
    return Turn(
        id=turn_id,
        thread_id=SHOP,
        status=status,
        error=error,
        started_at=NOON - 200_000,
        duration_ms=12_400 if ended else None,
        items=[user_message(), reasoning(), command(), change(), message(), other()]
        if full
        else None,
    )


def user_message() -> UserMessage:
    """Return what the person wrote, on two lines."""
    return UserMessage(
        id="item-1",
        turn_id="turn-1",
        status=ItemStatus.COMPLETED,
        text="Add a cart page.\nKeep it small.",
    )


def message(
    text: str = "The cart page is there.", status: ItemStatus = ItemStatus.COMPLETED
) -> AgentMessage:
    """Return what the model wrote."""
    return AgentMessage(id="item-5", turn_id="turn-1", status=status, text=text)


def reasoning() -> Reasoning:
    """Return a reasoning summary."""
    return Reasoning(
        id="item-2",
        turn_id="turn-1",
        status=ItemStatus.COMPLETED,
        summary=["Looking at the routes.", "One template is enough."],
    )


def command(
    status: ItemStatus = ItemStatus.COMPLETED,
    *,
    exit_code: int | None = 0,
    output: str = "3 passed\n",
) -> Command:
    """Return a command."""
    done = status is not ItemStatus.IN_PROGRESS
    return Command(
        id="item-3",
        turn_id="turn-1",
        status=status,
        command="make test",
        cwd="/home/ann/shop",
        exit_code=exit_code if done else None,
        duration_ms=1_250 if done else None,
        output=output if done else "",
    )


def file_diff() -> FileDiff:
    """Return one changed file."""
    return FileDiff(
        path="shop/app.py", change=ChangeKind.UPDATE, diff=DIFF, added=1, removed=0
    )


def change(status: ItemStatus = ItemStatus.COMPLETED) -> FileChange:
    """Return a patch of two files."""
    fresh = FileDiff(
        path="shop/cart.py",
        change=ChangeKind.ADD,
        diff="+CART = []\n",
        added=1,
        removed=0,
    )
    return FileChange(
        id="item-4",
        turn_id="turn-1",
        status=status,
        changes=[file_diff(), fresh],
        files=2,
    )


def other() -> OtherItem:
    """Return an item of a type that v2 does not map."""
    return OtherItem(
        id="item-6",
        turn_id="turn-1",
        status=ItemStatus.COMPLETED,
        source_type="webSearch",
        summary="searched the web for: cart",
    )


def desktop() -> Writer:
    """Return Codex desktop as the writer, since 11:42."""
    return Writer(
        kind=WriterKind.DESKTOP, name="Codex desktop", pid=812, since=NOON - 1_080_000
    )


def closed_gate() -> GateState:
    """Return a gate that the desktop closed."""
    return GateState(
        state=GatePosition.READ_ONLY,
        reason=GateReason.DESKTOP_ACTIVE,
        writer=desktop(),
        since=NOON - 1_080_000,
        retry_after_ms=5_000,
    )


def open_gate() -> GateState:
    """Return an open gate."""
    return GateState(state=GatePosition.OPEN, since=NOON - 7_200_000)


def runtime() -> RuntimeState:
    """Return a codex that is ready."""
    return RuntimeState(
        state=RuntimePhase.READY,
        name="codex",
        version="0.163.0",
        since=NOON - 7_200_000,
    )


def status(gate: GateState) -> GatewayStatus:
    """Return the status of an Agent that holds one thread; a writer has another."""
    followed = FollowedThread(thread_id=BLOG, writer=gate.writer, since=NOON - 60_000)
    return GatewayStatus(
        agent=AgentInfo(id="a" * 32, name="ann-desk", version="0.1.0"),
        runtime=runtime(),
        gate=gate,
        warnings=["approvalsDecidedLocally"],
        leases=[LeaseInfo(thread_id=SHOP, state=LeaseState.HELD, since=NOON - 60_000)],
        following=[followed] if gate.writer is not None else [],
        sessions=2,
        uptime_ms=7_500_000,
        epoch="e1",
        head=42,
    )


def ceiling() -> Ceiling:
    """Return how far a device may go by default."""
    return Ceiling(
        sandbox="workspace-write",
        approval_policy=["untrusted", "on-request"],
        roots=["/home/ann/shop"],
    )


def device(device_id: str = "0a1b2c3d4e5f6071", name: str = "phone") -> DeviceRow:
    """Return a paired device."""
    return DeviceRow(
        id=device_id,
        name=name,
        fingerprint="AAAA-BBBB-CCCC-DDDD-EEEE-FFFF",
        scopes=["read", "write", "approve"],
        ceiling=ceiling(),
        created_at=NOON - 86_400_000,
        last_seen_at=NOON - 30_000,
        paired_by_check=True,
        sessions=0,
    )


def candidate() -> PairCandidate:
    """Return a device that asks to be paired."""
    return PairCandidate(
        name="phone",
        fingerprint="AAAA-BBBB-CCCC-DDDD-EEEE-FFFF",
        check="012345",
        source="192.168.1.20",
        scopes=["read", "write"],
        ceiling=ceiling(),
    )
