"""The problems."""
