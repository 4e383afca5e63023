"""What GCC and clang understood of a source: the proof of what the passes believe."""
