"""Models as lines. Sans-IO."""

from collections.abc import Sequence

from clients.cli.columns import table
from clients.cli.plain import one_line
from clients.cli.style import Line, Span, line
from transport.protocol.capabilities import ModelInfo


def model_table(models: Sequence[ModelInfo], *, width: int | None) -> list[Line]:
    """Return a table; the default model and each default effort have a mark."""
    if not models:
        return [line("No models.")]
    rows = [
        [
            Span("*" if model.is_default else " ", "good"),
            Span(one_line(model.id, 60), "name"),
            Span(one_line(model.name, 60)),
            Span(_efforts(model)),
        ]
        for model in models
    ]
    return table(("", "MODEL", "NAME", "EFFORTS"), rows, width=width)


def _efforts(model: ModelInfo) -> str:
    shown = [
        f"{one_line(effort, 20)}*" if effort == model.default_effort else effort
        for effort in model.efforts
    ]
    return ", ".join(one_line(effort, 21) for effort in shown)
