"""What is said in the demo, by the person and by the scripted model. Sans-IO.

Sans-IO.
"""

from typing import Any, Final

from clients.cli.scripted_answers import Rule

PLAN: Final = "Plan a small website for a bakery."
PLANNED: Final = "One page: the opening hours, the bread of the day, and a map."

BREADS: Final = "Name six breads, one on each line."
BREAD_NAMES: Final = ("Rye", "Spelt", "Baguette", "Ciabatta", "Pumpernickel", "Brioche")

TIDY: Final = "Tidy up the folder."
TIDY_COMMAND: Final = "rm notes.txt"
TIDIED: Final = "All right: I have left everything where it is."

HOURS: Final = "Write our opening hours into hours.txt."
HOURS_COMMAND: Final = "echo 'Tuesday to Saturday, 7 to 13' > hours.txt"
WRITTEN: Final = "The opening hours are in hours.txt."

AT_THE_DESK: Final = "By the way: in August we are on holiday."
NOTED: Final = "Noted: no bread in August."

TOO_SOON: Final = "Is there anything to add?"
QUESTION: Final = "When are we on holiday?"
ANSWER: Final = "In August: you told me so at the desk."

KNOWN: Final = (PLAN, BREADS, TIDY, HOURS, AT_THE_DESK, QUESTION)
"""What the model has an answer for; everything else it says back."""


def _asking(command: str, why: str) -> dict[str, Any]:
    """A command that Codex may only run when a person allows it."""
    return {
        "call": "exec_command",
        "args": {
            "cmd": command,
            "sandbox_permissions": "require_escalated",
            "justification": why,
        },
    }


def rules() -> list[Rule]:
    """Return the scripted model's part."""
    breads = "\n".join(f"{n}. {name}" for n, name in enumerate(BREAD_NAMES, 1))
    tidy = _asking(TIDY_COMMAND, "The notes look old.")
    hours = _asking(HOURS_COMMAND, "I want to write a file.")
    return [
        Rule(PLAN, [[{"msg": PLANNED}]]),
        Rule(BREADS, [[{"msg": breads, "delay": 0.12}]]),
        Rule(TIDY, [[tidy], [{"msg": TIDIED}]]),
        Rule(HOURS, [[hours], [{"msg": WRITTEN}]]),
        Rule(AT_THE_DESK, [[{"msg": NOTED}]]),
        Rule(QUESTION, [[{"msg": ANSWER, "delay": 0.05}]]),
    ]
