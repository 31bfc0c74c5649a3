"""Field ownership: sets of field paths, who owns them, and what applying does to them."""
