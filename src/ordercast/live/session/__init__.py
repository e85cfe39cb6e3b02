"""The life of a group without socket, clock or chance: handshake, failure detector, closing, discovery."""
