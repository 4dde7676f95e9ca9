"""The version of this code that the database compares with its minimum (two versions run side by side in a deploy)."""

from typing import Final

CODE_VERSION: Final = 1
