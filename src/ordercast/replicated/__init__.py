"""Replicated objects on live groups: classes whose commands all members apply in one order.

`join` makes objects live in a group; `Replicated` is the base class of your own, and there are some ready ones. The
public names are those of `__all__`.
"""

from ordercast.replicated.barriers import Barrier
from ordercast.replicated.calls import Answers
from ordercast.replicated.collections import Counter, Set
from ordercast.replicated.dictionary import Change, Dict
from ordercast.replicated.history import History
from ordercast.replicated.joining import join
from ordercast.replicated.locks import Holder, Leader, Lock
from ordercast.replicated.member import Member
from ordercast.replicated.objects import Call, CommandId, Context, Query, Replicated, command, query
from ordercast.replicated.queues import Assignment, Queue

__all__ = [
    "Answers",
    "Assignment",
    "Barrier",
    "Call",
    "Change",
    "CommandId",
    "Context",
    "Counter",
    "Dict",
    "History",
    "Holder",
    "Leader",
    "Lock",
    "Member",
    "Query",
    "Queue",
    "Replicated",
    "Set",
    "command",
    "join",
    "query",
]
