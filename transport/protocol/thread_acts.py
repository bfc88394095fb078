"""What is done to a thread as a whole: its name, its place, a fork. Sans-IO.

PROTOCOL.md section 4. None of these but the fork and compacting starts a turn.
"""

from typing import Annotated

from pydantic import Field, JsonValue

from transport.protocol.base import ThreadMutationParams, WireId, WireModel
from transport.protocol.threads import Thread
from transport.protocol.turns import (
    EffortName,
    FolderName,
    ModelName,
    ModeName,
    Turn,
    TurnInput,
)


class ThreadRenameParams(ThreadMutationParams):
    """`thread/rename`: the title becomes this, on one line."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


class ThreadArchiveParams(ThreadMutationParams):
    """`thread/archive`: out of the list; it can still be read."""


class ThreadUnarchiveParams(ThreadMutationParams):
    """`thread/unarchive`: back into the list."""


class ThreadDeleteParams(ThreadMutationParams):
    """`thread/delete`: gone for good."""


class ThreadDeleteResult(WireModel):
    """Nothing is left to tell."""


class ThreadCompactParams(ThreadMutationParams):
    """`thread/compact`: a summary takes the place of what the model has read so far."""

    expected_last_turn_id: WireId | None = None
    allow_pending: bool = False


class ThreadCompactResult(WireModel):
    """The thread, and the turn that writes the summary, seen to start."""

    thread: Thread
    turn: Turn


class ThreadRevertParams(ThreadMutationParams):
    """`thread/revert`: this turn and all behind it are taken back, for good.

    Files stay as they are. There is no `allowPending`: work that others left in the
    thread must not begin in what is about to go.
    """

    before_turn_id: WireId
    expected_last_turn_id: WireId | None = None


class ThreadForkParams(ThreadMutationParams):
    """`thread/fork`: a copy of a thread goes on with this message, as one mutation.

    The copy ends with `through_turn_id`, or right before `before_turn_id`, or holds all.
    What the message is to run with: as in `turn/start`.
    """

    through_turn_id: WireId | None = None
    before_turn_id: WireId | None = None
    input: TurnInput
    mode: ModeName | None = None
    model: ModelName | None = None
    effort: EffortName | None = None
    cwd: FolderName | None = None
    output_schema: dict[str, JsonValue] | None = None


class ThreadForkResult(WireModel):
    """The new thread and its first own turn, seen to start."""

    thread: Thread
    turn: Turn
