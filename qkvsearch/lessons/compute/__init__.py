"""What the lessons compute: functions that their documents call."""
