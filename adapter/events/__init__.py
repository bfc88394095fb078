"""What an app-server tells, as events of v2."""
