"""What `ablate` is made of: cells, the processes that train them, and what came out side by side."""
