"""What a trained model makes of the splits: its surprisals, and how they come about."""
