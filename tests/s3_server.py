"""A real server of the S3 protocol for tests (moto's), on a port of its own, that knows one client's credentials; and
one that takes connections and says nothing.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3  # type: ignore[import-untyped]
import httpx
from botocore.config import Config  # type: ignore[import-untyped]

from tests.serving import poll

BUCKET = "rkgrade"

_REGION = "us-east-1"
#: What that client may do: everything, with objects.
_MAY = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'


class S3Server:
    def __init__(self, log: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.key_id = self.secret = "none-yet"

    @property
    def environment(self) -> dict[str, str]:
        """What a client has that may use it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": self.key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": _REGION,
        }

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        poll(self._answers, 30, "S3 answers")
        users = self._client("iam")
        users.create_user(UserName="grader")
        users.put_user_policy(UserName="grader", PolicyName="all", PolicyDocument=_MAY)
        made = users.create_access_key(UserName="grader")["AccessKey"]
        self.key_id, self.secret = made["AccessKeyId"], made["SecretAccessKey"]
        self.objects().create_bucket(Bucket=BUCKET)
        # From here on every request must be signed by somebody known.
        assert httpx.post(f"{self.url}/moto-api/reset-auth", content=b"0").status_code == 200

    def objects(self) -> boto3.client:
        return self._client("s3")

    def names(self, prefix: str = "") -> list[str]:
        """Of the objects in the bucket."""
        found = self.objects().list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return [one["Key"] for one in found.get("Contents", [])]

    def read(self, name: str) -> bytes:
        return bytes(self.objects().get_object(Bucket=BUCKET, Key=name)["Body"].read())

    def write(self, name: str, content: bytes) -> None:
        self.objects().put_object(Bucket=BUCKET, Key=name, Body=content)

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def _client(self, service: str) -> boto3.client:
        return boto3.client(
            service,
            endpoint_url=self.url,
            aws_access_key_id=self.key_id,
            aws_secret_access_key=self.secret,
            region_name=_REGION,
            config=Config(retries={"max_attempts": 1}),
        )

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/moto-api/data.json", timeout=5).status_code == 200
        except httpx.TransportError:
            return False


@contextlib.contextmanager
def s3_server(directory: Path) -> Iterator[S3Server]:
    directory.mkdir(parents=True, exist_ok=True)
    server = S3Server(directory / "s3.log")
    try:
        server.start()
        yield server
    finally:
        server.end()


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """The URL of a server that takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        yield f"http://127.0.0.1:{silent.getsockname()[1]}"
