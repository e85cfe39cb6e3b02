"""TO: total order broadcast on one lossy channel, with go-back-n recovery; the order of delivery is a policy."""
