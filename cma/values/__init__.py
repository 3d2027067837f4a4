"""What flows between the versions: names of things, times and errors. Nothing here keeps state."""
