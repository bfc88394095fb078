"""Mutations, step by step: from a request to a recorded end."""
