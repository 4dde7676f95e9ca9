"""Pure decisions: no clock, no random, no I/O. Everything here is a function of its arguments."""
