"""The browser page: one HTML file with the engine, a network, samples and everything that shows them thinking.

    write_page("digits", "page.html")
    spikformer page runs/spikformer_tiny_digits -o page.html

`build.py` puts the file together, `about.py` says in JSON what the network is, `gallery.py` picks its samples, and
`bundle.py` makes one script of the modules beside them. Needs no torch.
"""

from __future__ import annotations

from spikformer.page.build import WrittenPage, write_page

__all__ = ["WrittenPage", "write_page"]
