"""Private names that other packages import."""
