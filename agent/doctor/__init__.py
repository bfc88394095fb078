"""`threadgate doctor`: examines the workstation, changes nothing."""
