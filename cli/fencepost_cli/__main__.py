from fencepost_cli.main import main

main()
