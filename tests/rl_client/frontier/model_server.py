"""A server of OpenAI's API as a program: `CHECKPOINT PORT`. The checkpoint's folder says what it answers.

Its child leaves its session, as a careless server's do. Both write their ids to `pids` in the folder, and each request
is a line of `asked` there. Where there is `dies` it ends at its second request; where there is `hangs` it never answers
that one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from tests.rl_client.answering import Asked, answering
from tests.rl_client.evaluate.models import Model


def serve(checkpoint: Path, port: int) -> None:
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with (checkpoint / "pids").open("a") as file:
        file.write(f"{os.getpid()} {child.pid}\n")

    def before(count: int) -> None:
        if count > 1 and (checkpoint / "dies").exists():
            print("out of memory", flush=True)
            os._exit(7)
        if count > 1 and (checkpoint / "hangs").exists():
            threading.Event().wait()
        with (checkpoint / "asked").open("a") as file:
            file.write("1\n")

    model = Model(json.loads((checkpoint / "answers.json").read_text()), before=before)

    def reply(one: Asked) -> tuple[int, dict[str, str], object]:
        if one.authorization != f"Bearer {os.environ['OPENAI_API_KEY']}":
            return 401, {}, {"error": "no key"}
        return model(one)

    with answering(reply, port):
        threading.Event().wait()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
