"""What Codex asks, as approvals behind opaque ids."""
