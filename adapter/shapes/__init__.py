"""Codex's shapes as v2's."""
