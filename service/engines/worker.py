"""A worker of the in-process engine: `python -m service.engines.worker FD`, one judge on one core.

Ends when its socket closes, whatever closed it; so a killed API leaves no worker behind. A fault that it
does not know ends it too, with the trace on stderr: the engine starts another one and asks again. Imports
no web framework, to stay small.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
import threading
import time

from service import heap
from service.contract import GradeRequest, RunRequest
from service.engines.answers import to_frame
from service.engines.base import Job, ToolCall
from service.engines.bench import Bench
from service.engines.frames import Frame, receive_frame
from service.engines.setup import WorkerSetup

#: How often a worker at work says that it lives.
_BEAT_S = 1.0


def main() -> None:
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    # The order to end comes through the socket; a signal sent to the whole group must not cut a cell's
    # cleaning short. Handlers, not SIG_IGN, which every program run here would inherit through exec.
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    setup = receive_frame(connection)
    if setup is None:
        return
    with contextlib.closing(Bench(WorkerSetup.of(setup))) as bench:
        try:
            connection.sendall(Frame("ready", {}).encode())
        except ConnectionError:
            # The service ended while this worker was starting.
            return
        heap.settle()
        _serve(Heartbeat(connection), bench)


class Heartbeat:
    """The worker's end of the socket, which tells the engine every second of a job that this process is not stopped.

    Between jobs it is silent, since nobody reads then.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._sending = threading.Lock()
        self._at_work = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def receive(self) -> Frame | None:
        """The engine's next frame; from here on it hears the heart beat."""
        frame = receive_frame(self.connection)
        self._at_work.set()
        return frame

    def rest(self) -> None:
        """There was nothing to do."""
        self._at_work.clear()

    def answer(self, frame: Frame) -> None:
        """Send what the job came to. Raises ConnectionError."""
        self._at_work.clear()
        with self._sending:
            self.connection.sendall(frame.encode())

    def _beat(self) -> None:
        beat = Frame("alive", {}).encode()
        while True:
            self._at_work.wait()
            time.sleep(_BEAT_S)
            with self._sending:
                if self._at_work.is_set():
                    try:
                        self.connection.sendall(beat)
                    except OSError:
                        return


def _serve(heartbeat: Heartbeat, bench: Bench) -> None:
    cancel_fd = heartbeat.connection.fileno()
    while (frame := heartbeat.receive()) is not None:
        match frame.kind:
            case "grade":
                answer = bench.grade(_job(frame), queue_s=frame.fields["queue_s"], cancel_fd=cancel_fd)
            case "vet":
                answer = bench.vet(frame.body, cancel_fd=cancel_fd)
            case "run":
                call = ToolCall(RunRequest.model_validate_json(frame.body), arrived_s=frame.fields["arrived_s"])
                answer = bench.run(call, queue_s=frame.fields["queue_s"], cancel_fd=cancel_fd)
            case _:
                # A cancel that comes alone is one that crossed with its job's result.
                heartbeat.rest()
                continue
        try:
            heartbeat.answer(to_frame(answer))
        except ConnectionError:
            return
        bench.warm()


def _job(frame: Frame) -> Job:
    return Job(
        request=GradeRequest.model_validate_json(frame.body),
        arrived_s=frame.fields["arrived_s"],
        index=frame.fields["index"],
    )


if __name__ == "__main__":
    main()
