"""`python -m clients.cli`: the command line without its entry point. Blocking I/O."""

from clients.cli.app import main

main()
