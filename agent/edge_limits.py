"""Bounds of the Agent's edge: journal, sessions, doors, pairing. Sans-IO.

PROTOCOL.md sections 1, 2 and 6; SECURITY.md names the ones that keep strangers out.
"""

from typing import Final

# Journal (PROTOCOL.md section 6). Bytes are texts and packed maps plus ENTRY_COST each.
JOURNAL_EVENTS: Final = 100_000  # an hour of a busy turn: who was away so long resumes
JOURNAL_BYTES: Final = 64 * 1024 * 1024  # as much as the cache of outputs
ENTRY_COST: Final = 120  # what one entry costs beside its bytes (object, list slot)
STALE_SHARE: Final = 8  # a sweep of 1/8 of the ring costs less than it frees
KEPT_TEXT: Final = 64 * 1024  # text so far of an open item, a channel and part
KEPT_PARTS: Final = 64  # parts of one open item: more never came, and bound its memory
OPEN_ITEMS: Final = 1_024  # open at once; the oldest is forgotten before a leak grows
OPEN_ANSWER: Final = 512 * 1024  # all of `open` in one answer
WHOLE_EVENT: Final = 1024 * 1024 - 1_024  # packed; larger would not fit a frame

# Delivery
WRITE_BYTES: Final = 128 * 1024  # one write: what a 50 kbit/s line takes in 20 s
BATCHES_SHARED: Final = 64  # of WRITE_BYTES: 8 MB that sessions at one place share
DELTAS_A_FRAME: Final = 1_024  # below the decoder's array bound of 4,096
MERGED_TEXT: Final = 16 * 1024  # a merged delta stays small enough to draw at once
COMPANY_S: Final = 0.020  # a network carrier's deltas wait this long for company
GAPS: Final = 3  # so many gaps in GAPS_S turn deltas off
GAPS_S: Final = 60.0

# Sessions (PROTOCOL.md section 2)
LOCAL_SESSIONS: Final = 64  # admin.sock has its own, so devices cannot lock it out
OPEN_S: Final = 10.0  # a device that proves itself opens its session, or is sent away
UNSENT_A_DEVICE: Final = 4 * 1024 * 1024  # bytes of answers; above it nothing is read
UNSENT_ALL: Final = 64 * 1024 * 1024  # of all devices: 16 that take nothing
UNSENT_ANSWERS: Final = 32  # small answers that wait; then the session is not read
INVALID_REQUESTS: Final = 20  # in INVALID_S: not a client of this protocol
INVALID_S: Final = 60.0
READS_A_DEVICE: Final = 16  # at once, as many as one session's; the reader takes 64
READS_AT_ONCE: Final = (
    40  # of all devices; the rest of the 64 is for the owner and acts
)
ACTS_A_DEVICE: Final = 32  # under way, also after their session went
CLOSING_S: Final = 1.0  # to say why, then the stream is dropped
GOING_AWAY_S: Final = 2.0  # connections hear that we stop, then they are cut
REVOKING_S: Final = 60.0  # above what carries an act to its recorded end
STOPPING_S: Final = (
    40.0  # an interrupt that nothing answers has ended its writer by then
)
COMMAND_S: Final = 0.5  # `lock` without an Agent has the state folder for less
PRUNE_S: Final = 3_600.0  # how often the ledger forgets what is past its time
RETRY_AFTER_MS: Final = 2_000  # what a session that we close is told to wait

# Doors (SECURITY.md); the owner's config file has the rest
SOURCES: Final = 4_096  # remembered; the longest unseen is forgotten
DESCRIPTORS: Final = 1_024  # children get as many, and their select() bears no more
OWN_DESCRIPTORS: Final = 160  # 64 sessions of the owner, 5 app-servers, files, looks
OWNER_SPARES: Final = 4  # for the owner's door: one who locks, some who look
SOCKET_LOOK_S: Final = 2.0  # a folder of sockets that is gone: two lstat each time
ACCEPT_PAUSE_S: Final = 0.1  # no file descriptors left: wait for some to be closed

INCIDENT_S: Final = 60.0  # refusals of one kind are written down so often
INCIDENTS: Final = 1_024  # kinds remembered; the longest quiet is forgotten
STRANGERS: Final = 8  # sources named in INCIDENT_S: a day of that is 1 MB of audit log

# Pairing (PROTOCOL.md section 1)
OFFER_S: Final = 120.0
OFFER_FAILURES: Final = 3  # the secret has 256 bits: these are accidents or attacks
OFFER_HANDSHAKES: Final = 3  # may wait for their first record
DECISION_S: Final = 60.0
DEVICE_NAME: Final = 40  # printable characters shown at the workstation
DEVICES: Final = 256  # records in the file, revoked ones too
LAST_SEEN_S: Final = 60.0  # a device's last_seen is written at most this often
