"""How much is too much, and how much of it may stay: all of it arithmetic."""

NEVER = 1 << 62  # more tokens, or characters, than any conversation has
CHARS_PER_TOKEN = 4
MIN_THRESHOLD_TOKENS = 64_000
MOST_OF_WINDOW = 0.85  # the floor above must not lie beyond a small window
MIN_SUMMARY_TOKENS = 2_000
MAX_SUMMARY_TOKENS = 12_000
SUMMARY_SHARE = 0.20  # of what it stands for
SUMMARY_WINDOW_SHARE = 0.05
SUMMARISER_SHARE = 0.6  # of the summariser's window that one request fills


def threshold_tokens(window: int, share: float) -> int:
    """The size of a prompt at which it is compressed; never, when the window is not known."""
    if window <= 0:
        return NEVER
    return min(max(int(window * share), MIN_THRESHOLD_TOKENS), int(window * MOST_OF_WINDOW))


def tail_tokens(threshold: int, ratio: float) -> int:
    """What the newest messages may keep of a threshold, word for word."""
    return int(threshold * min(max(ratio, 0.10), 0.80))


def summary_tokens(summarised: int, window: int) -> int:
    """How long a summary of that many tokens may be."""
    most = min(int(window * SUMMARY_WINDOW_SHARE), MAX_SUMMARY_TOKENS)
    least = min(MIN_SUMMARY_TOKENS, window // 8)
    return max(min(int(summarised * SUMMARY_SHARE), most), least)


def piece_chars(window: int) -> int:
    """How much of a conversation a summariser with that window is handed at once."""
    return max(4_000, int(window * SUMMARISER_SHARE) * CHARS_PER_TOKEN)
