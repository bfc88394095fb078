"""What a shell asks while a word is typed; imported only then. Blocking I/O."""

import typer

Offer = tuple[str, str]
"""A word, and what it means."""


def hosts(incomplete: str) -> list[Offer]:
    """Offer the names of paired hosts."""
    from clients.cli import offers

    return offers.hosts(incomplete)


def threads(context: typer.Context, incomplete: str) -> list[Offer]:
    """Offer threads, of the host that was named so far."""
    from clients.cli import offers

    return offers.threads(context.params.get("host"), incomplete)


def approvals(context: typer.Context, incomplete: str) -> list[Offer]:
    """Offer what waits for an answer."""
    from clients.cli import offers

    return offers.approvals(context.params.get("host"), incomplete)


def queued(context: typer.Context, incomplete: str) -> list[Offer]:
    """Offer the messages that wait."""
    from clients.cli import offers

    return offers.queued(context.params.get("host"), incomplete)
