"""A viewer for traces: a page that is served on this machine, or exported as one file.

The page asks for tiles: counts where many events are in the way of each other, the events themselves where they are
few. `row_groups` reads what is asked for and no more, `tiles` and `questions` compute from arrays, `encoding` is what
travels, `page` and `export` make the page, `server` serves it. Nothing here judges a run: an
audit does.
"""
