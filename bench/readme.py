"""Keeps what was measured in bench/README.md: each subject between two marks, the rest is written by hand."""

from pathlib import Path

README = Path(__file__).parent / "README.md"


def keep(subject: str, section: str) -> None:
    """Replace the subject's section. Raises ValueError where the README has no place for it."""
    README.write_text(replaced(README.read_text(), subject, section))


def replaced(text: str, subject: str, section: str) -> str:
    begin, end = f"<!-- {subject} -->", f"<!-- /{subject} -->"
    if begin not in text or end not in text:
        raise ValueError(f"bench/README.md has no place for {subject}: {begin} … {end}")
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{section}\n{end}{rest.partition(end)[2]}"
