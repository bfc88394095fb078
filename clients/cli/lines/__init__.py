"""v2 models as lines for a person, one module a family. Sans-IO."""
