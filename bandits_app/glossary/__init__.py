"""The glossary: terms.json is its only source, for the view Glossary, docs/glossary.md and links to terms."""
