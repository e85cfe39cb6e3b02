"""Words that the page explains where they are met. The page of documents `reference/glossary.md` has them, too."""

from typing import NamedTuple


class Word(NamedTuple):
    """A word of the glossary."""

    term: str
    meaning: str
    forms: str = ""
    """A regular expression for how it is found in sentences, if not as the term alone."""


WORDS = (
    Word(
        "accepted",
        "level 1 of 3: the member has the message, and all that its sender sent to it before",
        "accept(s|ed)",
    ),
    Word(
        "pre-acknowledged",
        "level 2 of 3: the member knows that all destinations have the message",
        "pre-ack(nowledge(s|d))?",
    ),
    Word(
        "acknowledged",
        "level 3 of 3: the member knows that all others know that every destination has the message; nobody can "
        "come to another order any more",
        "ack(nowledge(s|d))?",
    ),
    Word("delivered", "handed to the application, in order", "deliver(s|ed)"),
    Word(
        "frozen",
        "the member accepts and delivers nothing until all have agreed on one order, or on a view",
        "froze(n)?|freezes?",
    ),
    Word(
        "blocked",
        "the member does not reach a quorum: it delivers nothing, and continues when it reaches one",
        "blocked",
    ),
    Word("gap", "a missing number in a sender's sequence", "gaps?"),
    Word("view", "a numbered membership: who belongs to the group from here on", "views?"),
    Word("epoch", "in ST and TO, the time between two agreements on the order after a loss", "epochs?"),
    Word(
        "stamp",
        "a member counts its transmissions; of two units of one member the one with the higher stamp is newer",
        "stamps?",
    ),
    Word("log", "the messages that a member has, in its order", "logs?"),
    Word("packet", "a numbered unit of data; may carry several messages", "packets?"),
    Word("unit", "what a protocol puts on the network: data, or a few words to the other members", "units?"),
    Word("copy", "a packet that is sent again, since somebody lacks it", "cop(y|ies)"),
    Word("request", "a unit that asks for the packets that its sender lacks", "requests?"),
    Word("reset", "a unit that says that its sender noticed a loss; who receives it freezes", "resets?"),
    Word("reply", "a unit with the whole log of its sender, from which all compute one order", "repl(y|ies)"),
    Word("done", "a unit that says that its sender lacks nothing of the order that was agreed on"),
    Word("poll", "a unit that asks the others what they have", "polls?"),
    Word("status", "what a member knows of all senders' packets; it is sent with every unit, or alone"),
    Word("marker", "a unit that ends a run of priorities", "markers?"),
    Word("foreign", "of a packet: its messages are for others; the member discards it, and learns from its status"),
    Word("duplicate", "of a packet: the member has it already, and discards it", "duplicates?"),
    Word("hearsay", "a loss that the units of other members show, before the next packet of its sender does"),
    Word("sequencer", "the member that numbers the messages of all"),
    Word("relay", "the member that passes on what the others send, so that all receive it in one order", "relays?"),
    Word("window", "how many packets a member may have sent and not know to be with their destinations", "windows?"),
    Word("witness", "the messages and members that show a violation", "witness(es)?"),
    Word("sound", "the corrected protocol; the default"),
    Word("paper", "the protocol exactly as published, with its mistakes"),
)
"""No meaning has markup; each is part of a sentence."""


def words_for_page() -> list[list[str]]:
    """Each word's forms, the word, and its meaning."""
    return [[word.forms or word.term, word.term, word.meaning] for word in WORDS]
