"""How bytes go to a server and come back, each read stamped: one seam, two ways."""
