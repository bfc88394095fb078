"""Threads, turns and items, as one caller may see them."""
