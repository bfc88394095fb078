"""What is said in the worked bytes of a session, by models of the protocol. Sans-IO."""

import hashlib
from dataclasses import dataclass, field
from typing import Any, Final

from transport.errors import CloseCode, Conflict
from transport.identities import PrivateKey, agent_id
from transport.limits import SESSION_LIMITS
from transport.protocol.base import Params, WireModel
from transport.protocol.events import (
    EventData,
    ItemCompleted,
    ItemStarted,
    Open,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.gateway import (
    AgentInfo,
    Ceiling,
    DeviceInfo,
    GatePosition,
    GateState,
    LeaseState,
    RuntimePhase,
    RuntimeState,
)
from transport.protocol.items import AgentMessage, ItemStatus, UserMessage
from transport.protocol.methods import (
    EVENTS_SUBSCRIBE,
    PAIRING_CONFIRM,
    SESSION_OPEN,
    THREAD_READ,
    TURN_START,
    Method,
)
from transport.protocol.session import (
    ClientInfo,
    PairingConfirmParams,
    PairingConfirmResult,
    ResumeFrom,
    SessionOpenParams,
    SessionOpenResult,
    SubscribeParams,
    SubscribeResult,
    VersionRange,
)
from transport.protocol.threads import (
    Thread,
    ThreadMode,
    ThreadReadParams,
    ThreadReadResult,
    ThreadStatus,
)
from transport.protocol.turns import TextInput, Turn, TurnStartParams, TurnStatus

Json = dict[str, Any]

NOW: Final = 1_796_126_400_000  # 2026-12-01 12:00 UTC, ms
THREAD: Final = "01a22e56-13fb-7221-b972-3e1191277281"
EPOCH: Final = "e7.3"
REF: Final = 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A frame that `who` sends, or its CLOSE. `what`: said to the reader."""

    who: str
    what: str
    frame: Json = field(default_factory=dict[str, Any])
    close: CloseCode | None = None


def _request(call_id: int, method: Method[Any, Any], params: Params, what: str) -> Line:
    frame = {"id": call_id, "method": method.name, "params": params.wire()}
    return Line(who="device", what=what, frame=frame)


def _answer(call_id: int, result: WireModel, what: str) -> Line:
    return Line(who="agent", what=what, frame={"id": call_id, "result": result.wire()})


def _event(seq: int, data: EventData, what: str) -> Line:
    frame = {
        "seq": seq,
        "event": data.event,
        "at": NOW,
        "threadId": THREAD,
        "data": data.wire(),
    }
    return Line(who="agent", what=what, frame=frame)


def fixed_key(name: str) -> PrivateKey:
    """Return a key that everybody knows."""
    return PrivateKey.from_bytes(fixed_bytes(name))


def fixed_bytes(name: str) -> bytes:
    """Return 32 bytes that everybody knows."""
    return hashlib.sha256(f"threadgate test key: {name}".encode()).digest()


AGENT_KEY: Final = fixed_key("agent")
CLIENT: Final = ClientInfo(
    name="example",
    version="0.1.0",
    platform="linux",
    instance="9f86d081884c7d659a2feaa0c55ad015",
)
AGENT: Final = AgentInfo(
    id=agent_id(AGENT_KEY.public), name="workstation", version="0.1.0"
)
PHONE: Final = DeviceInfo(
    id="5d41402abc4b2a76b9719d911017c592",
    name="phone",
    scopes=["read", "write"],
    ceiling=Ceiling(
        sandbox="workspace-write",
        approval_policy=["untrusted", "on-request"],
        roots=["/home/ann/bakery"],
    ),
)
GATE: Final = GateState(state=GatePosition.OPEN, since=NOW - 60_000)
NEXT_TURN: Final = Turn(
    id="turn-10", thread_id=THREAD, status=TurnStatus.IN_PROGRESS, started_at=NOW
)


def _thread() -> Thread:
    return Thread(
        id=THREAD,
        title="Six breads / sechs Brote 🥖",
        preview="Name six breads, one on each line.",
        cwd="/home/ann/bakery",
        source="vscode",
        status=ThreadStatus.RUNNING,
        mode=ThreadMode.LIVE,
        lease=LeaseState.HELD,
        created_at=NOW - 3_600_000,
        updated_at=NOW - 60_000,
        last_turn_id="turn-9",
    )


def _turn(status: TurnStatus, **more: Any) -> Turn:
    return Turn(id="turn-9", thread_id=THREAD, status=status, **more)


def _message(status: ItemStatus, text: str) -> AgentMessage:
    return AgentMessage(id="item-2", turn_id="turn-9", status=status, text=text)


def _open_session() -> SessionOpenResult:
    runtime = RuntimeState(
        state=RuntimePhase.READY, name="codex", version="0.163.0", since=NOW - 900_000
    )
    return SessionOpenResult(
        protocol="2.0",
        agent=AGENT,
        device=PHONE,
        runtime=runtime,
        gate=GATE,
        epoch=EPOCH,
        head=4182,
        now=NOW,
        limits=SESSION_LIMITS,
    )


def _deltas(*rows: list[Any]) -> Json:
    return {"d": rows[0]} if len(rows) == 1 else {"ds": [*rows]}


def _refusal() -> Json:
    refusal = Conflict(
        "A turn is running in this thread; nothing was sent. Wait for its end, or "
        "interrupt it.",
        data={"what": "running", "turn": NEXT_TURN.wire()},
    )
    return {"id": 4, "error": refusal.wire()}


PAIRING_TALK: Final = [
    _request(
        1,
        PAIRING_CONFIRM,
        PairingConfirmParams(client=CLIENT),
        "the only request; it takes the offer",
    ),
    _answer(
        1,
        PairingConfirmResult(device=PHONE, agent=AGENT),
        "the person at the workstation has said yes",
    ),
    Line(who="agent", what="the Agent closes: done", close=CloseCode.DONE),
]

SESSION_TALK: Final = [
    _request(
        1,
        SESSION_OPEN,
        SessionOpenParams(protocol=VersionRange(min="2.0", max="2.0"), client=CLIENT),
        "comes first; with it the device has proven to be there",
    ),
    _request(
        2,
        EVENTS_SUBSCRIBE,
        SubscribeParams(threads=[THREAD], resume=ResumeFrom(epoch=EPOCH, seq=4_100)),
        "behind it in the same write; deltas has its default and is left out",
    ),
    _answer(1, _open_session(), "who is there, how things stand, and the limits"),
    _answer(
        2,
        SubscribeResult(
            epoch=EPOCH,
            head=4182,
            verdict="ok",
            open=[
                Open(ref=REF, seq=4170, item=_message(ItemStatus.IN_PROGRESS, "1. Rye"))
            ],
        ),
        "one item is in progress, with its text up to seq 4170",
    ),
    _request(
        3,
        THREAD_READ,
        ThreadReadParams(thread_id=THREAD, turns=1),
        "a read",
    ),
    _answer(
        3,
        ThreadReadResult(
            thread=_thread(),
            turns=[
                _turn(
                    TurnStatus.IN_PROGRESS,
                    items=[
                        UserMessage(
                            id="item-1",
                            turn_id="turn-9",
                            status=ItemStatus.COMPLETED,
                            text="Name six breads, one on each line.",
                            attachments=[],
                        )
                    ],
                )
            ],
            head=4182,
        ),
        "text is UTF-8; what has no value is left out",
    ),
    Line(
        who="agent",
        what="a delta: seq, ref, channel (0 = text), part, text",
        frame=_deltas([4183, REF, 0, 0, "\n2. Spelt"]),
    ),
    Line(
        who="agent",
        what="several deltas in one frame",
        frame=_deltas([4184, REF, 0, 0, "\n3."], [4185, REF, 0, 0, " Baguette"]),
    ),
    _event(
        4186,
        ItemCompleted(
            ref=REF,
            item=_message(ItemStatus.COMPLETED, "1. Rye\n2. Spelt\n3. Baguette"),
        ),
        "the item whole: it counts, whatever the deltas said",
    ),
    _event(
        4187,
        TurnCompleted(
            turn=_turn(TurnStatus.COMPLETED, completed_at=NOW, duration_ms=900)
        ),
        "the turn ends",
    ),
    _event(
        4188,
        TurnStarted(turn=NEXT_TURN),
        "another device begins the next one",
    ),
    _event(
        4189,
        ItemStarted(
            ref=REF + 1,
            item=AgentMessage(
                id="item-4", turn_id="turn-10", status=ItemStatus.IN_PROGRESS, text=""
            ),
        ),
        "an item begins under a new ref",
    ),
    _request(
        4,
        TURN_START,
        TurnStartParams(
            thread_id=THREAD,
            input=[TextInput(type="text", text="Go on.")],
            request_key="0f1e2d3c4b5a69788796a5b4c3d2e1f0",
            expected_last_turn_id="turn-9",
        ),
        "a mutation, with the key that makes a repeat harmless",
    ),
    Line(who="agent", what="it is refused, with what runs", frame=_refusal()),
    Line(who="device", what="a keepalive", frame={"ping": 3}),
    Line(
        who="agent",
        what="its answer; seq is a valid cursor",
        frame={"pong": 3, "seq": 4189, "now": NOW + 15_000},
    ),
    Line(who="device", what="the device closes: done", close=CloseCode.DONE),
]
