"""Connected devices, their requests and the doors they come through."""
