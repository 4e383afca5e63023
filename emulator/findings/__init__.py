"""What the checked build found: kinds, source lines, sentences."""
