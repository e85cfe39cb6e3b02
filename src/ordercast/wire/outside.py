"""What a member and one that is not in its view send to each other: with the address that answers go to."""

from typing import Annotated

import msgspec

from ordercast.protocols.membership.units import Answer, Apply, Find, Found, Welcome
from ordercast.protocols.membership.view import MAX_ADDRESS


class Outside(msgspec.Struct, frozen=True, array_like=True, tag=108):
    """A unit between a member and one that is not in its view. It travels under the sender's incarnation."""

    address: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ADDRESS)]
    """Of the sender: answers go there."""
    unit: Find | Found | Apply | Answer | Welcome
