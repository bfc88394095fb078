"""Requests about commands that outlived their turn. Sans-IO. PROTOCOL.md section 4."""

from adapter.calls.commands import Command, command
from generated.codex import (
    ThreadBackgroundTerminalsCleanParams,
    ThreadBackgroundTerminalsListParams,
    ThreadBackgroundTerminalsTerminateParams,
)


def list_background(thread_id: str) -> Command:
    """Commands that outlived their turn."""
    params: ThreadBackgroundTerminalsListParams = {"threadId": thread_id}
    return command("thread/backgroundTerminals/list", params)


def stop_background(thread_id: str, process_id: str) -> Command:
    """End one of them."""
    params: ThreadBackgroundTerminalsTerminateParams = {
        "threadId": thread_id,
        "processId": process_id,
    }
    return command("thread/backgroundTerminals/terminate", params)


def stop_all_background(thread_id: str) -> Command:
    """End all of them."""
    params: ThreadBackgroundTerminalsCleanParams = {"threadId": thread_id}
    return command("thread/backgroundTerminals/clean", params)
