"""Joins what reads for callers, and what answers approvals. Trio shell, no decisions."""

from dataclasses import dataclass

from agent.approvals.approvals import Approvals
from agent.approvals.approving import Approving
from agent.approvals.decided import Decided
from agent.ground import Given, Ground
from agent.reading.contents import Contents
from agent.reading.judge import Judge
from agent.reading.output_cache import OutputCache
from agent.reading.reading import Reading
from agent.reading.turn_pages import TurnPages
from agent.reading.word_search import WordSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """All of it, wired."""

    judge: Judge
    reading: Reading
    contents: Contents
    words: WordSearch
    approvals: Approvals
    approving: Approving


def build_readings(given: Given, ground: Ground, cache: OutputCache) -> Readings:
    """Wire it. `cache`: whole texts of this run."""
    judge = Judge(keeper=ground.keeper, leases=ground.leases, watch=ground.eyes)
    decided = Decided()
    approvals = Approvals(
        leases=ground.leases, sight=ground.sight, decided=decided, head=given.head
    )
    return Readings(
        judge=judge,
        reading=_reading(given, ground, judge),
        contents=_contents(given, ground, cache),
        words=_words(given, ground, judge),
        approvals=approvals,
        approving=_approving(given, ground, approvals, decided),
    )


def _reading(given: Given, ground: Ground, judge: Judge) -> Reading:
    turn_pages = TurnPages(
        supervisor=ground.supervisor,
        leases=ground.leases,
        judge=judge,
        now_ms=given.now_ms,
    )
    return Reading(
        supervisor=ground.supervisor,
        sight=ground.sight,
        judge=judge,
        turn_pages=turn_pages,
        head=given.head,
        now_ms=given.now_ms,
    )


def _contents(given: Given, ground: Ground, cache: OutputCache) -> Contents:
    return Contents(
        supervisor=ground.supervisor,
        leases=ground.leases,
        sight=ground.sight,
        cache=cache,
        head=given.head,
        now_ms=given.now_ms,
    )


def _words(given: Given, ground: Ground, judge: Judge) -> WordSearch:
    return WordSearch(
        supervisor=ground.supervisor,
        sight=ground.sight,
        judge=judge,
        head=given.head,
        now_ms=given.now_ms,
    )


def _approving(
    given: Given, ground: Ground, approvals: Approvals, decided: Decided
) -> Approving:
    return Approving(
        handler_nursery=given.handler_nursery,
        leases=ground.leases,
        keeper=ground.keeper,
        approvals=approvals,
        decided=decided,
        audit=given.audit,
        now_ms=given.now_ms,
        run=given.run,
    )
