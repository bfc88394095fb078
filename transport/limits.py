"""Every bound of the transport in one place, each with its reason. Sans-IO."""

from typing import Final

from transport.protocol.gateway import Limits

# Wire (PROTOCOL.md section 1)
MAX_UNIT: Final = 65_535  # one Noise message, Noise spec section 3
MIN_UNIT: Final = 16  # an AEAD tag alone
MAX_FIRST_UNIT: Final = 2_048  # before authentication: message 1 is 96 B + a name
MAX_DEVICE_NAME: Final = 100  # bytes of UTF-8 in message 1 of a pairing
FRAME_IN: Final = 256 * 1024  # device → Agent
FRAME_OUT: Final = 1024 * 1024  # Agent → device
MAX_PARTS: Final = 64  # record parts of one frame: 1 MiB needs 17
MAX_RECORDS: Final = 2**32  # a session ends (renew) long before a nonce could
ADMIN_FRAME: Final = FRAME_OUT  # either way: what a session may be told, and no more

# msgpack (1 MiB of empty maps would become 76 MB without these)
MAX_ARRAY: Final = 4_096  # four times the deltas of a frame
MAX_MAP: Final = 256  # keys; a form has 64 fields
MAX_STRING: Final = 256 * 1024  # bytes; a message has 200,000
MAX_DEPTH: Final = 32  # an output schema nests deepest
MAX_CONTAINERS: Final = 65_536  # maps and lists of one frame: 16 MB at worst

# Time, seconds
FIRST_UNIT_S: Final = 2.0
HANDSHAKE_S: Final = 5.0
CLOSE_S: Final = 1.0  # to say CLOSE to a peer that may not read
STALLED_SEND_S: Final = 20.0  # a socket that takes less than a slice in this time
CONNECT_S: Final = 10.0  # to reach an address at all

# A carrier that is a program (ssh), seconds and bytes
CHILD_HANDSHAKE_S: Final = 30.0  # ssh's own handshake and a Python there come first
CHILD_END_S: Final = 1.0  # at the end of its input, and again after TERM
CHILD_WORDS: Final = 4_096  # of its stderr: the last line says why

# Key files
KEY_FILE: Final = 1024 * 1024  # bytes; a thousand devices are 400 KB

# Shell
RECEIVE_CHUNK: Final = 64 * 1024  # bytes asked of a stream at once
SEND_SLICE: Final = 64 * 1024  # a larger write is watched slice by slice

# Client, seconds
CALL_S: Final = 30.0  # patience for a read
MUTATION_S: Final = 120.0  # for a mutation, lost links and its repeats included
OWNER_S: Final = (
    120.0  # the owner's acts: what has begun ends within 60 s, turns in 40 more
)
PAIRING_S: Final = 90.0  # the person at the workstation has 60 s
PAIR_AWAIT_S: Final = 240.0  # an offer lives 120 s, the question after it 60 s
BACKOFF_S: Final = 0.5  # before the first reconnect; doubles
BACKOFF_MAX_S: Final = 30.0
STEADY_S: Final = 60.0  # a session that lived this long starts the back-off anew
REFS_HELD: Final = 4_096  # items in progress that are followed; an Agent keeps 1,024
EVENTS_HELD: Final = 1_024  # of 1 KB mostly: 1 MB; more are asked for again

SESSION_LIMITS: Final = Limits(  # what a session is told; PROTOCOL.md section 2
    frame_in=FRAME_IN,
    frame_out=FRAME_OUT,
    in_flight=16,
    page=100,
    text_input=200_000,
    blob=10 * 1024 * 1024,
    blob_chunk=64 * 1024,
    blobs_per_turn=20 * 1024 * 1024,
    ping_ms=15_000,
    dead_ms=45_000,
    session_ms=86_400_000,
    request_key_ms=86_400_000,
    wait_ms=90_000,
    approval_ms=300_000,
)
