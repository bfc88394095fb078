"""Events on their way out to devices."""
