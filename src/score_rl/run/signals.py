"""Ctrl-C and SIGTERM while training: the first asks for an orderly end, the second ends at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from score_rl.run import messages
from score_rl.run.messages import Announcer


class StopRequest:
    """Whether somebody asked training to stop."""

    def __init__(self) -> None:
        self.asked = False

    @contextmanager
    def listening(self, announcer: Announcer) -> Iterator[None]:
        """Signals are heard in here. Python delivers them to the main thread only."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def ask(number: int, frame: FrameType | None) -> None:
            if self.asked:
                raise KeyboardInterrupt
            self.asked = True
            announcer.insist(messages.stopping())

        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
