"""What the scripted model says to whom."""

from clients.cli.scripted_model import Rule, ScriptedModel


def test_each_thread_is_told_all_steps_from_the_first() -> None:
    steps = [[{"msg": "one"}], [{"msg": "two"}]]
    model = ScriptedModel(rules=[Rule("tidy", steps)])

    def asked(thread: str, *texts: str) -> object:
        said = [{"role": "user", "content": text} for text in texts]
        body = {"prompt_cache_key": thread, "input": said}
        return model.plan(body)[1][0]["msg"]

    for thread in ("a", "b"):
        told = [asked(thread, "tidy up") for _ in range(3)]
        assert told == ["one", "two", "done"]
    assert asked("a", "tidy up", "tidy up") == "one"
