"""Speaking with an app-server: requests, answers, versions."""
