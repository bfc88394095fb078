"""Messages that wait until their thread is free."""
