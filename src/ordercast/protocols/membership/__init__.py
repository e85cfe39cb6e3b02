"""Membership for every order: views as epochs, agreed on by ballots. The rules are in docs/protocols/membership.md."""
