"""Die with whoever started us: `python -I -S leash.py PARENT SIGNAL COMMAND…` ties COMMAND to its parent (Linux).

The kernel sends SIGNAL when the parent is gone, however it went: nothing started through a leash outlives a
starter that was killed with SIGKILL. `{leash}` in COMMAND becomes our own number, so that a command which starts
another one can be named as its parent. It tells by the parent's *thread*: start it from one that stays.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, number: int, command: list[str]) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:  # it was gone before we asked
        sys.exit(1)
    own = str(os.getpid())
    os.execvp(command[0], [word.replace("{leash}", own) for word in command])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
