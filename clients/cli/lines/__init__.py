"""v2 models as lines for a person: pure functions, one module a family."""
