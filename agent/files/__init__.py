"""Uploads, and pictures read back."""
