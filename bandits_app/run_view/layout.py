"""Style sheets of the Arena: rows close together, and presentation mode."""

from __future__ import annotations

import streamlit as st


def compact() -> None:
    """Move the rows of the page together, so that the first plot is in sight."""
    st.html(f"<style>{_COMPACT}</style>")


def enlarge() -> None:
    """Enlarge the type for a projector, hide the sidebar and what surrounds the page."""
    st.html(f"<style>{_LARGE}</style>")


# In the row of the run, shortcuts are named in the tooltips: their marks would need the room of the progress.
_COMPACT = """
[data-testid=stMainBlockContainer]{padding-top:4rem}
[data-testid=stMainBlockContainer]>[data-testid=stVerticalBlock]{gap:.375rem}
.st-key-arena-head h1{padding:0;font-size:1.5rem}
.st-key-arena-head>:has(>[data-testid=stMarkdown] [data-testid=stCaptionContainer]){flex:1 1 9rem;min-width:0}
:is(.st-key-arena-head,.st-key-arena-about,.st-key-run-status) [data-testid=stCaptionContainer]{margin:0}
:is(.st-key-arena-head,.st-key-arena-about,.st-key-run-status) [data-testid=stCaptionContainer] p{margin:0;
line-height:1.25rem}
[data-testid=stLayoutWrapper]:has(>.st-key-run-status){flex:1 1 13rem;min-width:0}
.st-key-run-status p{font-size:.8125rem;line-height:1.25}
.st-key-arena-run kbd,[class*="st-key-preset-"] button[aria-label="Clear value"]{display:none}
.st-key-arena-about [data-testid=stPopover] button{height:1.25rem;min-height:0;padding:0;border:0}
.st-key-arena-about>:has([data-testid=stCaptionContainer]){min-width:0}
.st-key-arena-about{overflow-x:clip}
@media (min-width:700px){
.st-key-arena-about [data-testid=stCaptionContainer] p{white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
}
@media (max-width:699px){
.st-key-arena-about :has(>[data-testid=stPopover]){display:none}
}
"""

# All sizes on a page, Streamlit's and ours, are in rem: the root's font size scales them all.
_LARGE = """
html{font-size:clamp(14px,min(.9vw + 6px,2.1vh),32px)}
[data-testid=stSidebar],[data-testid=stExpandSidebarButton],[data-testid=stHeader]{display:none}
[data-testid=stMainBlockContainer]{padding:.5rem clamp(1rem,2vw,2rem) 0}
[data-testid=stMainBlockContainer]>[data-testid=stVerticalBlock]{gap:.375rem}
[data-testid=stLayoutWrapper]:has(>.st-key-run-status){flex:1 1 13rem;min-width:0}
.st-key-arena-run kbd{display:none}
:is(.st-key-main-sliders,.st-key-run-status) [data-testid=stCaptionContainer],
:is(.st-key-main-sliders,.st-key-run-status) [data-testid=stCaptionContainer] p{margin:0}
"""
