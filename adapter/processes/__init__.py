"""Processes: found, started, watched, ended."""
