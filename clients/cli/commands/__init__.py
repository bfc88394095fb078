"""The commands: names, options, help; what they do is imported when they run. Blocking I/O."""
