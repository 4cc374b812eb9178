"""Ctrl-C, SIGTERM and SIGHUP while training: the first asks for an orderly end, the second ends at once.

SIGHUP comes when a terminal is closed or a connection breaks off. Under `nohup` it is ignored, and stays so.
"""

import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from score_rl.run import messages
from score_rl.run.messages import Announcer

HANGUP = getattr(signal, "SIGHUP", None)  # Windows has none
STOPS = [number for number in (signal.SIGINT, signal.SIGTERM, HANGUP) if number is not None]


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
            if number == HANGUP:
                _forget_the_terminal()
            if self.asked:
                raise KeyboardInterrupt
            self.asked = True
            announcer.insist(messages.stopping())

        heard = [number for number in STOPS if signal.getsignal(number) != signal.SIG_IGN or number != HANGUP]
        before = {number: signal.signal(number, ask) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _forget_the_terminal() -> None:
    """What is printed to a terminal that is gone fails, and would end the training before its checkpoint."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        try:
            gone = stat.S_ISCHR(os.fstat(number).st_mode) and not os.isatty(number)
        except OSError:
            continue  # closed by whoever started it
        if gone:
            os.dup2(nowhere, number)
    os.close(nowhere)
