"""`python -m fencepost_cli`."""

from fencepost_cli.main import main

main()
