"""Links of the documents, as far as they lead from README.md."""

from __future__ import annotations

from docs.make_site import broken_links, linked


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    documents = linked("README.md")
    assert {"README.md", "docs/deploy.md", "docs/decisions/runs.md"} <= set(documents)
    assert list(broken_links(documents)) == []


def test_a_broken_link_is_named() -> None:
    text = "[a](docs/none.md) [b](docs/deploy.md#nowhere) [c](#start) [d](https://example.org)"
    assert list(broken_links({"README.md": text})) == [
        "README.md: docs/none.md: no such file",
        "README.md: docs/deploy.md#nowhere: no such heading",
    ]
