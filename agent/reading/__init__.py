"""Threads, turns, items and approvals, as one caller may see them."""
