"""What is known of a nest before it gets a schedule: dependences, legality, contractions, bounds, work."""
