"""Reviews of changes, and the method that starts one. Sans-IO. PROTOCOL.md section 4."""

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from transport.protocol.base import Params, ThreadMutationParams, WireId

_NO_BRANCH: Final = re.compile(r"^[-/.]|\.\.|//|@\{|[\x00-\x20\x7f~^:?*\[\\]|[/.]$")


def _branch(name: str) -> str:
    """Let no name through that is none to git: Codex hands it to git as it is."""
    if _NO_BRANCH.search(name) or name == "@":
        raise ValueError("no name of a branch")
    return name


class UncommittedTarget(Params):
    """What is not committed yet: staged, unstaged and new files."""

    type: Literal["uncommitted"]


class BranchTarget(Params):
    """What the folder's branch has beyond `base`."""

    type: Literal["branch"]
    base: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_branch)]


class CommitTarget(Params):
    """What one commit changed."""

    type: Literal["commit"]
    sha: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{4,64}$")]


class CustomTarget(Params):
    """What the person says; at most `limits.textInput` bytes of UTF-8."""

    type: Literal["custom"]
    text: Annotated[str, Field(min_length=1, pattern=r"\S")]


ReviewTarget = UncommittedTarget | BranchTarget | CommitTarget | CustomTarget


class ReviewStartParams(ThreadMutationParams):
    """`review/start`: a turn of this very thread looks through changes."""

    target: Annotated[ReviewTarget, Field(discriminator="type")]
    expected_last_turn_id: WireId | None = None
    allow_pending: bool = False
