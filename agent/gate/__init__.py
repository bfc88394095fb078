"""Whether anybody may write now: who else does, and the gate that follows from it."""
