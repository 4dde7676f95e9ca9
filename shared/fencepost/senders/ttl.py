"""How long a provider may keep trying, told anew at each attempt as the time that is left."""

FOUR_WEEKS_SECONDS = 2_419_200  # FCM's longest, and nobody takes less


def ttl_of(expires_in_seconds: float | None, longest_seconds: int = FOUR_WEEKS_SECONDS) -> int:
    """Whole seconds, never one more than is left. 0: now or never. No expiry: the longest."""
    if expires_in_seconds is None:
        return longest_seconds
    return max(0, min(int(expires_in_seconds), longest_seconds))
