"""The `fencepost` command. Modules here import little: what a command needs is imported when it runs."""
