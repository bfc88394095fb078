"""Our app-servers: the reader that is kept alive, and the writers on lease."""
