"""Replicated objects on live groups: classes whose commands all members apply in one order.

The public names are those of `__all__`.
"""

from ordercast.replicated.calls import Answers
from ordercast.replicated.joining import join
from ordercast.replicated.members import Members
from ordercast.replicated.objects import Call, CommandId, Context, Replicated, command, query

__all__ = ["Answers", "Call", "CommandId", "Context", "Members", "Replicated", "command", "join", "query"]
