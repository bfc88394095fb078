"""`python -m clients.cli`: the command line where its entry point is not installed."""

from clients.cli.app import main

main()
