"""Every bound of the adapter in one place, each with its reason. Sans-IO."""

from typing import Final

# One app-server process
REQUESTS_IN_FLIGHT: Final = 64  # bursts of 150 and more get no answer at all
STDOUT_CHUNK: Final = 256 * 1024  # one read; a line may be of any length (20 MB seen)
STDERR_RING: Final = 1024 * 1024  # the newest of what it logs; the rest is dropped
STDERR_TAIL: Final = 2_000  # characters of it that an error carries
WRITE_S: Final = 5.0  # a line half written into a full pipe: then the process ends

# Deadlines of requests, seconds
READ_S: Final = 10.0
LIST_S: Final = 60.0  # a default thread/list scans and repairs a whole home
RESUME_S: Final = 30.0
OTHER_S: Final = 15.0
PAUSE_GOAL_S: Final = 2.0  # inside an interrupt, which it must not hold back

# Starting and ending a process, seconds
SHELL_WAIT_S: Final = 10.0  # the login shell of Codex's snapshot is not cut short
SHELL_LOOK_S: Final = 0.2
END_S: Final = 1.0  # between end of input, SIGTERM and SIGKILL
OUTPUT_AFTER_EXIT_S: Final = 0.5  # somebody else may hold the pipe open
SWEEP_S: Final = 1.0  # a leftover gets this long between SIGTERM and SIGKILL

# Reading
RETRY_S: Final = 0.05  # reads fail for some ms while another process archives
SCAN_EVERY_S: Final = 300.0  # a list that scans rollouts, else the state database
QUEUE_SHOWN: Final = 20  # queued messages of others that are named
QUEUE_TEXT: Final = 500  # characters of each

# Writing
PROOF_S: Final = 10.0  # from the answer of turn/start to a turn seen to run
TURN_END_S: Final = 10.0  # from the answer of turn/interrupt to turn/completed
CONFIRM_S: Final = 15.0  # an answered approval that Codex does not confirm
OWN_RELEASE_S: Final = 1.0  # a lock refusal this soon after our own release is stale
LOCK_RETRY_S: Final = 0.25
ENDED_TURNS: Final = 32  # finished turns that a writer remembers whole
