"""To wait until something holds, never for a time: the one loop of all system tests."""
import time

PATIENCE_S = 120  # for what must happen some day; most of it takes a second or two, and ten times as long on a busy machine


def wait_for(condition, what="it did not happen", patience_s=PATIENCE_S, turn_s=0.05, error=AssertionError):
    """What the condition gives once it holds. what: said where it does not, as text or as a function that makes it."""
    end = time.monotonic() + patience_s
    while not (value := condition()):
        if time.monotonic() > end:
            raise error(f"not within {patience_s} s: " + (what() if callable(what) else what))
        time.sleep(turn_s)
    return value
