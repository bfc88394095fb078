"""Every bound of the adapter in one place, each with its reason. Sans-IO."""

from typing import Final

# One app-server process
REQUESTS_IN_FLIGHT: Final = 64  # bursts of 150 and more get no answer at all
STDOUT_CHUNK: Final = 256 * 1024  # one read; a line may be far longer (20 MB seen)
ANSWER_BYTES: Final = 32 * 1024 * 1024  # one answer: three of the largest items seen
LINE_BYTES: Final = 64 * 1024 * 1024  # any other line: three of the longest seen
REPLY_BYTES: Final = 1024 * 1024  # that wait for a full pipe: 10,000 refusals
STDERR_RING: Final = 1024 * 1024  # the newest of what it logs; the rest is dropped
STDERR_TAIL: Final = 2_000  # characters of it that an error carries
WRITE_S: Final = 5.0  # a line half written into a full pipe: then the process ends

# Deadlines of requests, seconds
INITIALIZE_S: Final = 120.0  # a new database is filled first: 5,000 threads take 15 s
READ_S: Final = 10.0
LIST_S: Final = 60.0  # a default thread/list scans and repairs a whole home
RESUME_S: Final = 30.0
OTHER_S: Final = 15.0
MODEL_PAGES: Final = 10  # 11 models fit one page today
SANDBOX_WORDS: Final = 300  # characters of why a sandbox does not start
PROBE_S: Final = 10.0  # asked for what costs nothing, after a deadline has passed
PAUSE_GOAL_S: Final = 2.0  # inside an interrupt, which it must not hold back

# Starting and ending a process, seconds
SHELL_WAIT_S: Final = 10.0  # the login shell of Codex's snapshot is not cut short
SHELL_LOOK_S: Final = 0.2
EXEC_S: Final = 0.05  # between two programs a process has no argv, for microseconds
END_S: Final = 1.0  # between end of input, SIGTERM and SIGKILL
OUTPUT_AFTER_EXIT_S: Final = 0.5  # somebody else may hold the pipe open
LINGER_S: Final = 0.3  # what dies with an app-server is gone a moment after it
SWEEP_S: Final = 1.0  # a leftover gets this long between SIGTERM and SIGKILL

# Reading
RETRY_PAUSES_S: Final = (0.05, 0.1, 0.2, 0.4)  # 1 read in 10 fails while others archive
SCAN_EVERY_S: Final = 300.0  # a list that scans rollouts, else the state database
SCANNED: Final = 100  # the newest rollouts, which Codex's database may lack
QUEUE_SHOWN: Final = 20  # queued messages of others that are named
QUEUE_TEXT: Final = 500  # characters of each
ITEMS_A_PAGE: Final = 100  # Codex's own bound
ITEMS_LOOKED: Final = 5_000  # items looked through for one that names no turn
ITEMS_LOOK_S: Final = 20.0  # … and how long: where items have 10 MB, not all of them
FIRST_TURNS: Final = 4  # whole turns asked for before it is known how large they are
FIRST_ITEMS: Final = 8  # items; one of 10 MB fits an answer, and usual ones a second
PORTION_GROWTH: Final = 16  # times as many at once: a page of 50 takes two requests
PAGE_SHOWN: Final = 512 * 1024  # bytes that become a page's: a client is sent no more
PAGE_RAW: Final = 12 * 1024 * 1024  # bytes read for one page; an item may have 10 MB
LARGE_THREADS: Final = 64  # of which it is remembered that their rows are large
SCAN_PATIENCE_S: Final = 1.0  # a list waits so long for the first scan, not longer
SNIPPET_CHARS: Final = 300  # the line in which words were found
FILES_S: Final = 15.0  # looking through 300,000 files takes 4 s
FILES_END_S: Final = 1.0  # a search that nobody waits for ends within 0.05 s
FILES_FOUND: Final = 50  # Codex's own bound of a search
FORK_TRIES: Final = 6  # a source that writes items is ahead of what can be copied
FORK_PAUSE_S: Final = 0.1  # the next try has always worked
TURNS_LOOKED: Final = 100  # Codex's own bound of a page
BOUNDARY_PAGES: Final = 20  # looked through for where a review began

# Writing
PROOF_S: Final = 10.0  # from the answer of turn/start to a turn seen to run
SLEPT_MS: Final = 5_000  # a shorter sleep of the computer breaks no connection
STEERS_WATCHED: Final = 64  # that the model has not taken yet; a person types a few
TURN_END_S: Final = 10.0  # from the answer of turn/interrupt to turn/completed
SETTLE_S: Final = 2.0  # from a change of settings to the notification of it
CONFIRM_S: Final = 15.0  # an answered approval that Codex does not confirm
OWN_RELEASE_S: Final = 1.0  # a lock refusal this soon after our own release is stale
LOCK_RETRY_S: Final = 0.25

# What is told (PROTOCOL.md section 5). Sizes in bytes of UTF-8.
TEXT_BYTES: Final = 64 * 1024  # one text of an item: its head and its tail
ITEM_BYTES: Final = 256 * 1024  # one item, packed
APPROVAL_BYTES: Final = 256 * 1024  # one approval, packed: a frame holds three
CHANGES: Final = 200  # files of one change that are listed
ACTIONS: Final = 100  # of a command; a hint for the eye
ATTACHMENTS: Final = 50  # of a user message
CITATIONS: Final = 50  # of an agent message
AGENTS: Final = 100  # that one item is about
LINE_CHARS: Final = 300  # the one line that stands for an unmapped item
PREVIEW_CHARS: Final = 200  # of titles and first words: a line of a wide terminal
BACKGROUND_SHOWN: Final = 64  # background commands; with 8 KB each half a frame
COMMAND_BYTES: Final = 4_096  # of a background command in a list
PATH_BYTES: Final = 4_096  # the kernel's own PATH_MAX
PLAN_STEPS: Final = 100  # more than a person reads
SUMMARY_PARTS: Final = 100  # of a reasoning; more are told as one
NOTICE_CHARS: Final = 2_000  # a screen
REASON_BYTES: Final = 4_096  # why Codex asks; the question itself is never cut for it
ALLOWS: Final = 64  # lines that say what else a yes lets through
DELTA_BYTES: Final = 32 * 1024  # Codex cuts at 8,192 characters; we do not rely on it
QUESTIONS: Final = 8  # of one request; Codex tells its model to ask three at most
OPTIONS: Final = 32  # that Codex proposes for one of them
LABEL_BYTES: Final = 1024  # of an option, a header, a title, a description
FORM_FIELDS: Final = 64  # of one form, as many as an answer may hold
FORM_CHOICES: Final = 64  # that one field offers
FORM_NAME_CHARS: Final = 256  # of one field

# What one process's state may grow to
KNOWN_TURNS: Final = 10_000  # ids; a goal's loop starts ten a second
OPEN_AT_ONCE: Final = 1_024  # items in progress; before one more the oldest is ended
TEXT_PARTS: Final = 100  # of one, kept apart while it grows; they share ITEM_BYTES
CLOSED_ITEMS: Final = 4_096  # ids of items that ended, so that none ends twice
LIVE_ITEMS: Final = 200  # items of a running turn that a reader is shown
LIVE_BYTES: Final = 2 * 1024 * 1024  # and their size
ENDED_TURNS: Final = 256  # turns that ended, whole but for their items
MISFIT_NAMES: Final = 256  # methods that did not fit, counted apart
NOTICES_SAID: Final = 256  # one text is said once for a thread
APPROVALS_OPEN: Final = 64  # waiting at once in one process
APPROVALS_KEPT: Final = 256  # that ended, for a device that repeats its answer
APPROVAL_MS: Final = 300_000
DEADLINES_S: Final = 5.0  # looked at this often while one is open: a sleep stops timers
KNOWN_THREADS: Final = 4_096  # that one process has spoken of (≈ 1 KB each)
KNOWN_MODES: Final = 10_000  # threads whose history mode is remembered (≈ 1 MB)
