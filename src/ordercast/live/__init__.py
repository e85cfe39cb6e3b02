"""Groups that live: machines of the protocols, hosted over real networks."""
