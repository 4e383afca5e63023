"""What the checked build adds to a source."""
