"""`planner serve`: the same answers over HTTP and in a browser, kept in the same store as the prices."""
