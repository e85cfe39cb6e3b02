"""Dynamic membership for every order: views, and what an order must offer so that one can end and the next begin."""
