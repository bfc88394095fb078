"""What other programs do to threads, told as events."""
