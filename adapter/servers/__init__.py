"""App-servers at work: the reader, the writers and what each does."""
