"""A verified DIST pushed to the Hub: one preflight, one commit, one tag, however often it is tried."""
