"""The page Artwork."""
