"""Bounds of the Agent's door: gate, leases, admission, ledger, audit. Sans-IO.

PROTOCOL.md section 3. Every number has its reason beside it.
"""

from typing import Final

# Gate and writer watch
LOOK_S: Final = 0.25  # the fork counter costs 8 µs, so four looks a second are free
GONE_S: Final = 0.25  # a program that restarts itself is away for less than two looks
YOUNG_S: Final = 5.0  # an exec changes a program under its old pid: look again
BETWEEN_S: Final = (
    0.1  # an exec that a busy machine holds up: no environment until then
)
FULL_SCAN_S: Final = 15.0  # everything anew; 22 ms among 1,000 processes
VERSION_S: Final = 5.0  # `EXE --version`; a native codex needs 20 ms on an idle machine
ASK_AGAIN_S: Final = 2.0  # a binary that did not answer: the machine was busy
VERSIONS_KEPT: Final = 64  # binaries whose version is remembered
ANCESTORS: Final = 16  # how far up a process's parents are read
WRITER_RETRY_MS: Final = 5_000  # people close a desktop in seconds, not in ms
GONE_RETRY_MS: Final = 300  # the second look of GONE_S confirms
LOCK_RETRY_MS: Final = 5_000  # … or leave a thread elsewhere
RUNTIME_RETRY_MS: Final = 1_000  # a reader that died is there again

# Leases
WRITERS: Final = 4  # 151 MB each; more at once than a person follows
WRITERS_A_DEVICE: Final = 3  # one device cannot keep all others from writing
OWNER_WRITERS: Final = 1  # beside them: the workstation's own message always finds room
IDLE_S: Final = 30.0  # long enough to answer, short enough for the desktop's user
NEXT_TURN_S: Final = 0.2  # Codex begins the next message of its own queue within 10 ms
QUEUE_TAKE_S: Final = 2.0  # one that is still there then does not begin by itself
QUEUE_LOOK_S: Final = 0.1
ROOM_S: Final = 15.0  # an idle writer that is ended for another one is gone by then
START_TRIES: Final = 4  # codex <= 0.163 can die before `initialize` (first and 3 more)
START_PAUSE_S: Final = 0.5
CHILDREN: Final = 4_096  # sub-agents of one lease whose events are told as its own
ELSEWHERE_KEPT: Final = 256  # threads that somebody else was met on

# Admission
ACT_S: Final = 40.0  # above the adapter's own deadlines (15 s answer, 10 s proof)
LOCK_POLL_S: Final = 0.5  # looking into /proc/locks while a client waits
TEXT_INPUT: Final = 200_000  # bytes of one message, `limits.textInput`
OURS_KEPT: Final = 10_000  # turn ids of ours that are remembered (each 36 B)

# Reading
PAGE_BYTES: Final = 512 * 1024  # packed; half a frame, so head and names fit beside
OPEN_BYTES: Final = (
    256 * 1024
)  # items in progress beside a page: with it 3/4 of a frame
THREADS_SCANNED: Final = 5_000  # threads read to learn the folders that exist
FOLDERS_KEPT: Final = 4_096  # as many as threads are scanned for, about 100 B each
THREADS_PLACED: Final = 10_000  # threads whose folder is remembered, about 200 B each
FOLDERS_AGE_S: Final = 10.0  # a folder that is not known is looked for this often
OUTPUT_CACHE: Final = 64 * 1024 * 1024  # texts of this run's items, the newest used
OUTPUT_TEXT: Final = 8 * 1024 * 1024  # of one of them; codex itself keeps 1 MiB
OUTPUT_ENTRY: Final = 512  # what one item costs beside its texts
DIFF_BYTES: Final = 256 * 1024  # of one `thread/diff`
DIFF_FILES: Final = 1_000  # that it names, the newest ones
DIFF_ITEMS: Final = 2_000  # that it looks through, newest first
DIFF_HELD: Final = 8 * 1024 * 1024  # characters of them; a page of them has 256 KiB
DIFF_S: Final = 10.0  # … and how long, where items are large

# Acts on whole threads
LEASE_IDLE_S: Final = 12.0  # the login shell of a load takes 10 s at most
UNDO_S: Final = 20.0  # to delete a fork whose message was refused

# Following other programs' threads
FOLLOWED: Final = 16  # read every second; each costs Codex some 10 ms
FOLLOW_S: Final = 1.0  # while it changes: what a person still takes for "now"
RUNNING_S: Final = 4.0  # a turn runs and says nothing: a command that takes its time
QUIET_S: Final = 15.0  # nothing happens; the list tells sooner where something does
LIST_S: Final = 1.0  # one list from the state database, 4 ms, tells what changed
LISTED: Final = 50  # threads of that list; a person works in fewer at a time
READ_SHARE: Final = 10  # a thread is read for 1/10 of the time at most, however long
RECENT_MS: Final = 10 * 60_000  # who wrote so lately may write again
TURNS_READ: Final = 3  # of a thread, each time; items can end after their turn
TURNS_A_PAGE: Final = 10  # … in pages: a whole turn can have megabytes
TURNS_REACHED: Final = 100  # read where it went on for longer without us
TOLD_THREADS: Final = 256  # threads whose events are remembered, about 100 KB each
REVERT_PAGE: Final = 100  # turns a page, looking for one to be taken back
REVERT_PAGES: Final = 50  # … and how many pages back
TURNS_TOLD: Final = 64  # turns of each
FULL_TURNS: Final = 4  # … whose items are compared with history, too
DOUBTS: Final = 1  # looks that may err before a foreign turn counts as cut short
FORGET_S: Final = 600.0  # nobody is subscribed: what was told is worth keeping so long
SUBSCRIBE_S: Final = 5.0  # a subscription waits so long for the base of its threads

# Approvals
CONFIRM_S: Final = 20.0  # the adapter answers after 15 s at the latest
RESOLVED_KEPT: Final = 1_000  # ended approvals that late answers are told about
RESOLVED_BYTES: Final = 8 * 1024 * 1024  # … and their size: one may have 256 KiB

# Ledger of request keys
DONE_MS: Final = 24 * 3_600_000  # `limits.requestKeyMs`
UNKNOWN_MS: Final = 7 * 24 * 3_600_000  # a person may come back after a week
SETTLE_S: Final = 10.0  # two reads of history, to see whether a message is there
SETTLE_PAGES: Final = 5  # of 100 items, newest first: what was sent is among the newest
SETTLE_TURNS: Final = 100  # one page, newest first
ROWS_A_DEVICE: Final = 10_000  # a change each 9 s, all day: more is a script gone wild
ROWS: Final = 50_000  # of all devices, five of which are full; usually about 25 MB
OWNER_ROWS: Final = 10_000  # beside them: no device takes the workstation's own
OUTCOME_BYTES: Final = 64 * 1024  # a stored answer; items are left out above it
UNSAVED: Final = 1_024  # outcomes that wait for a full disk; older ones read unknown
CATCH_UP_S: Final = 10.0  # how often what a full disk did not take is tried again
STORAGE_RETRY_MS: Final = 30_000  # a person makes room, no program does

# The Agent's own queue
QUEUE_A_THREAD: Final = 16  # more is not a queue but a script: use request keys
QUEUE_A_THREAD_A_DEVICE: Final = 12  # one device leaves others room in a thread
QUEUE_ALL: Final = 128  # of all devices; a message is 200 KB at most: 26 MB
QUEUE_A_DEVICE: Final = 64  # no device takes all places: half of them are for others
OWNER_QUEUE: Final = 64  # beside them, and so in a thread: devices take none of these
QUEUE_MS: Final = 24 * 3_600_000  # what was meant a day ago may not be meant now
QUEUE_PREVIEW: Final = 200  # characters of a message in lists and events
DELIVERIES: Final = 4  # tried at once of devices; the owner's beside them
DELIVERIES_A_DEVICE: Final = 3  # one leaves others a place, as with writers
QUEUE_RETRY_S: Final = 2.0  # after a refusal that may pass
QUEUE_SLOW_S: Final = 15.0  # while others' work waits in the thread: a person decides
QUEUE_LOCK_S: Final = 1.0  # looking into /proc/locks for a foreign holder's end
QUEUE_CODEX_S: Final = 2.0  # Codex refuses for now: twice as long after each time …
QUEUE_CODEX_MOST_S: Final = 300.0  # … since each may cost the start of a writer
QUEUE_TURNS: Final = (
    1_000  # looked through for a message that may have been sent before
)
QUEUE_TURNS_A_PAGE: Final = 50  # each with its first words and its last, 20 pages
DROPPED_MS: Final = 24 * 3_600_000  # a person who is away for a night is told, too
DROPPED_KEPT: Final = 256  # twice what may wait; about 1 KB each
DROPPED_WORDS: Final = 500  # characters of why one was dropped
SCHEMA_BYTES: Final = 32 * 1024  # of an output schema, as JSON

# What a full disk must still take
BEGIN_BYTES: Final = 256 * 1024  # below it nothing is begun: some pages of two files
RESERVE_BYTES: Final = 2 * 1024 * 1024  # a thousand devices anew, and SQLite's log

# Audit
AUDIT_BYTES: Final = 8 * 1024 * 1024  # a file; about 40,000 entries
AUDIT_FILES: Final = 5  # this one and four older ones
AUDIT_LINE: Final = 4_096  # an entry names things, it never quotes them
AUDIT_TEXT: Final = 200  # characters of one field
AUDIT_LATER: Final = 1_000  # entries that wait for a disk that is full

# Uploads and pictures
BLOB_BYTES: Final = 10 * 1024 * 1024  # `limits.blob`; a photograph has 3 to 8 MiB
BLOB_PIECE: Final = 64 * 1024  # `limits.blobChunk`; four fit a frame of 256 KiB
TURN_BLOB_BYTES: Final = 20 * 1024 * 1024  # `limits.blobsPerTurn`; as base64 27 MiB
DEVICE_BLOB_BYTES: Final = 100 * 1024 * 1024  # what one device may have on the disk
BLOBS_A_DEVICE: Final = 256  # files that are looked through at each begin
BLOBS_SAME: Final = 1_024  # files that get the same id when they are sent once more
BLOBS_ENDED: Final = 256  # ends of uploads, for who lost the answer
BLOB_MS: Final = 24 * 3_600_000  # Codex reads a picture at once; a queue may wait
UPLOAD_IDLE_S: Final = 30.0  # a phone without a network comes back in this time
UPLOAD_LOOK_S: Final = 5.0  # how often idle uploads are looked for
BLOBS_CLEAN_S: Final = 600.0  # … and old files
PICTURE_BYTES: Final = 32 * 1024 * 1024  # of a thread's picture that is read back
PICTURES_KNOWN: Final = 4_096  # that passed by, about 500 B each
PICTURE_THREADS: Final = 4  # a fork has the pictures of its source

# Looking for files
FILE_SEARCHES: Final = 2  # at once; each walks a folder with some threads of Codex's

# Warnings of gateway/status
WARNINGS_S: Final = 60.0  # config/read costs Codex some ms; people edit it rarely
WARNINGS_PAUSE_S: Final = 1.0  # until the runtime is there

# The reader's first start, and its restarts (suture's numbers)
FIRST_START_S: Final = (
    5.0  # a codex that fills a new database takes minutes: doors open
)
FAILURE_HALF_LIFE_S: Final = 30.0
FAILURES: Final = 5.0  # above this decayed count it waits
BACKOFF_S: Final = 15.0
