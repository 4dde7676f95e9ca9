"""One module a subject; each offers `measure(plan) -> list[Table]`."""
