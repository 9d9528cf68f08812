"""The page New items."""
