"""What is on record durably: request keys, queue rows, the audit."""
