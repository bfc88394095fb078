"""Devices: offered, paired, listed, revoked."""
