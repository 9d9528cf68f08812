"""The glossary: terms.json is its only source, for the page Glossary, docs/glossary.md and links to terms."""
