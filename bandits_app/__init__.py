"""Parts of the app's pages."""
