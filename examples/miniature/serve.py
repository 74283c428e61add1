"""A server of OpenAI's API over one small checkpoint: `CHECKPOINT PORT`. It knows `/v1/models` and `/v1/completions`.

The samples of a request are one batch, and requests are answered one after the other: what is sampled depends on a
request's own seed, and on nothing else.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig


class Policy:
    """The checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self._one_at_a_time = threading.Lock()

    def completions(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What `/v1/completions` answers. Raises KeyError, TypeError, ValueError of what cannot be answered."""
        given = self._tokenizer(asked["prompt"], return_tensors="pt")
        length, end = given.input_ids.shape[1], self._tokenizer.eos_token_id
        how = GenerationConfig(
            do_sample=True, temperature=asked["temperature"], top_p=asked["top_p"], top_k=0,
            max_new_tokens=asked["max_tokens"], num_return_sequences=asked["n"],
            eos_token_id=end, pad_token_id=self._tokenizer.pad_token_id,
        )  # fmt: skip
        with self._one_at_a_time, torch.inference_mode():
            torch.manual_seed(asked["seed"])
            sampled = self._model.generate(**given, generation_config=how)[:, length:]
        choices, tokens = [], 0
        for index, row in enumerate(sampled.tolist()):
            is_whole = end in row
            ids = row[: row.index(end)] if is_whole else row
            tokens += len(ids) + is_whole
            choices.append(
                {
                    "index": index,
                    "text": self._tokenizer.decode(ids),
                    "finish_reason": "stop" if is_whole else "length",
                }
            )
        usage = {"prompt_tokens": length, "completion_tokens": tokens, "total_tokens": length + tokens}
        return {"object": "text_completion", "model": self.name, "choices": choices, "usage": usage}


def handler(policy: Policy) -> type[BaseHTTPRequestHandler]:
    """What answers requests with it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/v1/models":
                self._answer(200, {"object": "list", "data": [{"id": policy.name, "object": "model"}]})
            else:
                self._answer(404, {"error": {"message": f"there is no {self.path}"}})

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path != "/v1/completions":
                self._answer(404, {"error": {"message": f"there is no {self.path}"}})
                return
            try:
                self._answer(200, policy.completions(json.loads(content)))
            except (KeyError, TypeError, ValueError) as error:
                self._answer(400, {"error": {"message": f"{type(error).__name__}: {error}"}})

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


class Server(ThreadingHTTPServer):
    #: Connections that come at once; the system turns away what is more.
    request_queue_size = 256


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[2])), handler(Policy(Path(sys.argv[1])))).serve_forever()
