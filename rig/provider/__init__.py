"""A provider that keeps a ledger of its own and misbehaves on purpose: `python -m rig.provider`.

It shares no code with the product: what it counts is a second opinion.
"""
