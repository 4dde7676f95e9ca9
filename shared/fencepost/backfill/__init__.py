"""Backfill: messages into commands, and commands into work (docs/backfill.md)."""
