"""ordercast: ordered group communication over networks that lose messages."""
