"""Whole live groups in one deterministic process: the objects of `ordercast.live`, in virtual time, on virtual sockets.

    python -m tests.live_harness --seconds 60      # random groups; those that fail are shrunk

`world` has time and processes, `loop` an event loop for each of them, `network` what becomes of datagrams, `sockets`
what the system lets a process do, `doors` how live code is given these; `plan` is what happens in a run, `draw` draws
one, `application` uses the group, `judge` says what is wrong, `shrink` leaves out what is not needed for it.
"""
