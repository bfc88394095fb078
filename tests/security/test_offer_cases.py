"""Pairing at a whole Agent: the offer, the question at the workstation, and what is stored.

The numbers are those of
SECURITY.md's cases. A whole Agent on real sockets; its runtime is played by the test, so
that it can be shown that nothing reached it.
"""

from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.support.agents import (
    House,
    client_info,
    open_agent,
    open_owner,
    pair_device,
)
from tests.support.edge import Peer, open_params
from tests.support.raw_devices import address_of
from transport.carriers import tcp
from transport.channel import connect_channel
from transport.client import Client, open_client, pair
from transport.connection import Mode
from transport.errors import (
    CloseCode,
    Forbidden,
    PeerClosedError,
    Refusal,
    TransportError,
)
from transport.identities import PrivateKey, Secret
from transport.pairing import PairingText, pairing_psk, parse_pairing_text
from transport.protocol import admin
from transport.protocol.methods import (
    DEVICE_LIST,
    DEVICE_REVOKE,
    PAIR_AWAIT,
    PAIR_DECIDE,
    PAIR_OPEN,
)


async def test_47_a_revoked_key_that_pairs_again_is_pointed_out(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            device = await pair_device(house)
            params = admin.DeviceRevokeParams(device_id=device.id)
            await owner.call(DEVICE_REVOKE, params)
            candidate = await candidate_of(house, owner, device.identity)
            assert candidate.known_revoked


async def take_part(
    text: PairingText,
    identity: PrivateKey,
    outcome: list[object],
    *,
    name: str = "phone",
    shown: list[str] | None = None,
) -> None:
    try:
        outcome.append(
            await pair(
                text,
                identity=identity,
                name=name,
                client=client_info(),
                on_check=(shown if shown is not None else []).append,
            )
        )
    except (Refusal, TransportError) as exc:
        outcome.append(exc)


async def open_offer(owner: Client, **params: object) -> PairingText:
    offer = await owner.call(PAIR_OPEN, admin.PairOpenParams.model_validate(params))
    return parse_pairing_text(offer.text)


async def candidate_of(
    house: House,
    owner: Client,
    identity: PrivateKey,
    *,
    name: str = "phone",
    accept: bool = False,
    outcome: list[object] | None = None,
) -> admin.PairCandidate:
    """Let a device come and be answered; return what the owner was shown."""
    del house
    text = await open_offer(owner)
    ends: list[object] = [] if outcome is None else outcome
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(take_part, text, identity, ends, name=name))
        seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
        assert seen.candidate is not None
        decide = admin.PairDecideParams(accept=accept, check=seen.candidate.check)
        with suppress(Refusal):
            await owner.call(PAIR_DECIDE, decide)
    return seen.candidate


async def devices_of(owner: Client) -> list[admin.DeviceRow]:
    return (await owner.call(DEVICE_LIST, admin.DeviceListParams())).devices


async def test_61_74_an_offer_ends_after_two_minutes_also_of_sleep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = 0.0
    monkeypatch.setattr("agent.edge.boot_s", lambda: trio.current_time() + slept)
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            slept = 121.0
            outcome: list[object] = []
            await take_part(text, PrivateKey.generate(), outcome)
            assert isinstance(outcome[0], TransportError)
            seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
            assert (seen.outcome, await devices_of(owner)) == ("ended", [])
            assert "two minutes" in str(seen.why)


async def test_62_a_second_device_with_the_same_text_meets_silence(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            first: list[object] = []
            second: list[object] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take_part, text, PrivateKey.generate(), first)
                seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
                assert seen.candidate is not None
                await take_part(text, PrivateKey.generate(), second)
                assert isinstance(second[0], TransportError)
                check = seen.candidate.check
                await owner.call(
                    PAIR_DECIDE, admin.PairDecideParams(accept=True, check=check)
                )
            assert len(await devices_of(owner)) == 1


async def test_63_three_wrong_secrets_close_the_offer_and_the_owner_is_told(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            wrong = PairingText(
                agent_key=text.agent_key, secret=Secret(b"w" * 32), urls=text.urls
            )
            for _ in range(3):
                outcome: list[object] = []
                await take_part(wrong, PrivateKey.generate(), outcome)
                assert isinstance(outcome[0], TransportError)
            seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
            assert seen.outcome == "ended"
            assert "failed" in str(seen.why)
            right: list[object] = []
            await take_part(text, PrivateKey.generate(), right)
            assert isinstance(right[0], TransportError)


async def test_64_a_thief_of_the_text_shows_another_number_and_a_no_stores_nothing(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            thief: list[object] = []
            shown: list[str] = []
            mine: list[object] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take_part, text, PrivateKey.generate(), thief)
                seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
                assert seen.candidate is not None
                take = partial(take_part, shown=shown)
                await take(text, PrivateKey.generate(), mine)
                assert shown == [], "the owner's device has no number to compare"
                no = admin.PairDecideParams(accept=False, check=seen.candidate.check)
                await owner.call(PAIR_DECIDE, no)
            assert isinstance(thief[0], Forbidden)
            assert await devices_of(owner) == []


async def test_65_no_answer_is_a_no(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.pairing.pairing_door.DECISION_S", 0.2)
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            outcome: list[object] = []
            await take_part(text, PrivateKey.generate(), outcome)
            assert isinstance(outcome[0], Forbidden)
            assert await devices_of(owner) == []


async def test_65_a_prompt_that_dies_is_a_no(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            outcome: list[object] = []
            async with (
                trio.open_nursery() as nursery,
                open_client(house.admin, client_info()) as prompt,
            ):
                text = await open_offer(prompt)
                nursery.start_soon(take_part, text, PrivateKey.generate(), outcome)
                seen = await prompt.call(PAIR_AWAIT, admin.PairAwaitParams())
                assert seen.candidate is not None
            assert isinstance(outcome[0], Forbidden)
            assert await devices_of(owner) == []


async def test_a_yes_with_another_number_is_not_a_yes(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            outcome: list[object] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take_part, text, PrivateKey.generate(), outcome)
                seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
                assert seen.candidate is not None
                other = f"{(int(seen.candidate.check) + 1) % 1_000_000:06d}"
                with pytest.raises(Refusal):
                    await owner.call(
                        PAIR_DECIDE, admin.PairDecideParams(accept=True, check=other)
                    )
                assert await devices_of(owner) == []
                no = admin.PairDecideParams(accept=False, check=seen.candidate.check)
                await owner.call(PAIR_DECIDE, no)
            assert isinstance(outcome[0], Forbidden)


async def test_66_a_devices_name_cannot_write_into_the_question(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            evil = "ok\x1b[2J\nScopes: read\u202e"
            candidate = await candidate_of(
                house, owner, PrivateKey.generate(), name=evil
            )
            assert candidate.name.isprintable()
            assert "\n" not in candidate.name


async def test_69_a_full_disk_pairs_nobody_and_burns_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:

            def full(*_: object) -> None:
                raise OSError(28, "No space left on device")

            monkeypatch.setattr("agent.pairing.devices.write_secret_file", full)
            outcome: list[object] = []
            await candidate_of(
                house, owner, PrivateKey.generate(), accept=True, outcome=outcome
            )
            monkeypatch.undo()
            assert isinstance(outcome[0], Refusal)
            assert await devices_of(owner) == []
            seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
            assert seen.outcome == "ended"
            files = {path.name for path in house.config.state_dir.iterdir()}
            assert "devices.json" not in files


async def test_pairing_without_a_question_gives_read_and_nothing_else(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            with pytest.raises(Refusal):
                await open_offer(owner, scopes=["read", "write"], unattended=True)
            text = await open_offer(owner, unattended=True)
            outcome: list[object] = []
            await take_part(text, PrivateKey.generate(), outcome)
            (row,) = await devices_of(owner)
            assert row.scopes == ["read"]
            assert not row.paired_by_check
            seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
            assert seen.outcome == "paired"


async def test_a_pairing_connection_can_do_nothing_but_pair(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            channel = await connect_channel(
                await tcp.connect(*address_of(house)),
                mode=Mode.PAIRING,
                agent_key=text.agent_key,
                identity=PrivateKey.generate(),
                psk=pairing_psk(text.secret),
                payload=b"phone",
                padded=True,
            )
            peer = Peer(channel)
            await peer.ask("session/open", open_params())
            with pytest.raises(PeerClosedError) as caught:
                await peer.receive()
            await channel.aclose()
            assert caught.value.code is CloseCode.PROTOCOL_ERROR
            assert await devices_of(owner) == []
