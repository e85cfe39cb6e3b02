"""TO: total order to everybody on one channel, by going back after a loss: what PriTO and PriO are made of."""
