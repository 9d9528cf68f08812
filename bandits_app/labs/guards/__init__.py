"""The lab Guard rails."""
