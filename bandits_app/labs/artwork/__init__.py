"""The lab Artwork."""
