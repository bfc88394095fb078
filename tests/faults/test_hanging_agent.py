"""An Agent that lives and answers nothing: stopped, swapped out, on a disk that hangs."""

import signal
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import trio

from tests.support.agents import Device, client_info, pair_device
from tests.support.codex import CodexHome, open_codex_home
from tests.support.real_agent import send_params
from tests.support.served_agent import (
    ServedAgent,
    freeze,
    open_owner_of,
    open_served_agent,
)
from transport import dial
from transport.client import Client, EventSeen, LinkState, Target, open_client
from transport.errors import SilentAgentError
from transport.keys import load_identity
from transport.link import Link
from transport.protocol.events import TurnCompleted
from transport.protocol.gateway import Limits
from transport.protocol.methods import THREAD_READ, THREAD_START, TURN_START
from transport.protocol.threads import ThreadReadParams, ThreadStartParams, ThreadStatus
from transport.protocol.turns import TextInput

pytestmark = pytest.mark.codex
HANDSHAKE_S, PING_MS, DEAD_MS = 2.0, 500, 3_000  # in place of 5 s, 15 s and 45 s
RUNNING = ThreadStatus.RUNNING
WHY = "the Agent hangs or has too much to do"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    adopt = Link.adopt

    def adopt_short(link: Link, limits: Limits) -> None:
        adopt(link, limits.model_copy(update={"ping_ms": PING_MS, "dead_ms": DEAD_MS}))

    monkeypatch.setattr(Link, "adopt", adopt_short)
    monkeypatch.setattr(dial, "HANDSHAKE_S", HANDSHAKE_S)


@dataclass
class Told:
    """What a device was told, and a wake-up for each thing."""

    links: list[LinkState] = field(default_factory=list[LinkState])
    turns: list[str] = field(default_factory=list[str])
    _news: trio.Event = field(default_factory=trio.Event)

    def link(self, state: LinkState) -> None:
        self.links.append(state)
        self._news.set()

    async def follow(
        self, client: Client, *, task_status: trio.TaskStatus[None]
    ) -> None:
        async with client.subscribe("all") as events:
            task_status.started()
            async for event in events:
                if isinstance(event, EventSeen):
                    if isinstance(event.data, TurnCompleted):
                        self.turns.append(event.data.turn.id)
                    self._news.set()

    async def wait(self, seen: Callable[[], bool]) -> None:
        while not seen():
            self._news = trio.Event()
            await self._news.wait()


def target(agent: ServedAgent, device: Device) -> Target:
    return Target(
        url=f"unix://{agent.state}/run/agent.sock",
        agent_key=load_identity(agent.state / "identity.key", create=False).public,
        identity=device.identity,
        psk=device.paired.psk,
    )


async def new_thread(agent: ServedAgent, home: CodexHome) -> str:
    params = ThreadStartParams(
        cwd=str(home.workspace),
        input=[TextInput(type="text", text="hello")],
        request_key="n" * 32,
        wait_ms=20_000,
    )
    async with open_owner_of(agent) as owner:
        started = await owner.call(THREAD_START, params, timeout_s=60)
        read = ThreadReadParams(thread_id=started.thread.id)
        while (await owner.call(THREAD_READ, read)).thread.status is RUNNING:
            pass  # each read is a round trip
    return started.thread.id


@pytest.mark.usefixtures("impatient")
async def test_an_agent_that_hangs_is_told_as_such_and_both_go_on_after_it() -> None:
    told, answers = Told(), list[str]()
    with trio.fail_after(240):
        async with open_codex_home() as home, open_served_agent(home) as agent:
            thread = await new_thread(agent, home)
            phone = target(agent, await pair_device(agent, name="phone"))
            tablet = target(
                agent, await pair_device(agent, scopes=["read", "write"], name="tablet")
            )
            params = send_params(thread, "sent once", key="once")
            async with (
                open_client(phone, client_info(), on_link=told.link) as watching,
                open_client(tablet, client_info()) as sending,
                trio.open_nursery() as nursery,
            ):

                async def send() -> None:
                    answers.append((await sending.call(TURN_START, params)).sent.id)

                await nursery.start(told.follow, watching)
                await freeze(agent.process.pid)
                nursery.start_soon(send)
                with pytest.raises(SilentAgentError, match=WHY):
                    async with open_client(phone, client_info()):
                        pass
                await told.wait(lambda: len(told.links) > 1)
                assert "nothing was heard" in told.links[1].why
                await told.wait(lambda: WHY in told.links[-1].why)
                assert not answers
                agent.signal(signal.SIGCONT)
                await told.wait(lambda: bool(answers) and answers[0] in told.turns)
                again = await sending.call(TURN_START, params)
                nursery.cancel_scope.cancel(reason="both have gone on")
            assert again.sent.id == answers[0]
            assert told.turns.count(answers[0]) == 1
            texts = [one for request in home.model.requests for one in request.texts]
            assert texts.count("sent once") == 1
