"""The lab New items."""
