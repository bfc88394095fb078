"""Params that fit: of every act that a device may ask for, on the thread `thr_1`."""

from typing import Any, Final

from transport.protocol import turns

ACT_PARAMS: Final[dict[str, dict[str, Any]]] = {
    "thread/start": {
        "cwd": "/work/app",
        "input": [{"type": "text", "text": "x"}],
        "requestKey": "k" * 16,
    },
    "turn/start": {
        "threadId": "thr_1",
        "input": [{"type": "text", "text": "x"}],
        "requestKey": "k" * 16,
    },
    "turn/interrupt": {"threadId": "thr_1", "turnId": "t1", "requestKey": "k" * 16},
    "approval/answer": {"approvalId": "apr_1", "digest": "d", "choice": "accept"},
    "blob/begin": {
        "name": "a",
        "size": 9,
        "sha256": "0" * 64,
        "mediaType": "text/plain",
    },
    "blob/chunk": {"uploadId": "0" * 32, "offset": 0, "bytes": b"x"},
    "blob/commit": {"uploadId": "0" * 32},
    "turn/steer": {
        "threadId": "thr_1",
        "turnId": "t1",
        "input": [{"type": "text", "text": "x"}],
        "requestKey": "k" * 16,
    },
    "thread/settings": {
        "threadId": "thr_1",
        "model": "m",
        "requestKey": "k" * 16,
    },
    "thread/fork": {
        "threadId": "thr_1",
        "input": [{"type": "text", "text": "x"}],
        "requestKey": "k" * 16,
    },
    "thread/rename": {"threadId": "thr_1", "name": "x", "requestKey": "k" * 16},
    "thread/archive": {"threadId": "thr_1", "requestKey": "k" * 16},
    "thread/unarchive": {"threadId": "thr_1", "requestKey": "k" * 16},
    "thread/delete": {"threadId": "thr_1", "requestKey": "k" * 16},
    "queue/delete": {"queueId": "q1", "requestKey": "k" * 16},
    "background/stop": {"threadId": "thr_1", "itemId": "i1", "requestKey": "k" * 16},
    "thread/goal/set": {
        "threadId": "thr_1",
        "objective": "x",
        "requestKey": "k" * 16,
    },
    "thread/goal/pause": {"threadId": "thr_1", "requestKey": "k" * 16},
    "thread/goal/clear": {"threadId": "thr_1", "requestKey": "k" * 16},
    "thread/compact": {"threadId": "thr_1", "requestKey": "k" * 16},
    "thread/revert": {
        "threadId": "thr_1",
        "beforeTurnId": "t2",
        "requestKey": "k" * 16,
    },
    "review/start": {
        "threadId": "thr_1",
        "target": {"type": "uncommitted"},
        "requestKey": "k" * 16,
    },
}


def turn_params(key: str = "k" * 32) -> turns.TurnStartParams:
    """Return the params of a turn/start, for `Client.call`."""
    return turns.TurnStartParams(
        thread_id="thr_1",
        input=[turns.TextInput(type="text", text="go on")],
        request_key=key,
    )
