"""Ctrl-C: once asks, twice ends; elsewhere it means what it meant before."""

import signal
import threading
from collections.abc import Iterator

import pytest

from score_rl.run import messages
from score_rl.run.messages import Announcer
from score_rl.run.signals import StopRequest


class Listener(Announcer):
    def __init__(self) -> None:
        self.said: list[str] = []

    def insist(self, message: str) -> None:
        self.said.append(message)


@pytest.fixture
def hangups_are_heard() -> Iterator[None]:
    """Also where the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangups_are_heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_asks_and_the_second_ends(number: int) -> None:
    stop, announcer, before = StopRequest(), Listener(), signal.getsignal(number)
    with stop.listening(announcer):
        assert not stop.asked
        signal.raise_signal(number)
        assert stop.asked
        assert announcer.said == [messages.stopping()]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_under_nohup_training_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever ignores a hangup wants to log out and have the training go on."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = StopRequest()
        with stop.listening(Listener()):
            signal.raise_signal(signal.SIGHUP)
        assert not stop.asked
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_put_back_after_an_error() -> None:
    stop, before = StopRequest(), signal.getsignal(signal.SIGINT)
    with pytest.raises(RuntimeError), stop.listening(Listener()):
        raise RuntimeError("training failed")
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_trains_without_signals() -> None:
    entered = []

    def train() -> None:
        with StopRequest().listening(Listener()):
            entered.append(True)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert entered == [True]
