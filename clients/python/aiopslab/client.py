"""The HTTP API of ``aiopslab serve``.

The server is the one at AIOPSLAB_URL (with AIOPSLAB_TOKEN), if that is set. Otherwise one is started
when it is first needed, and ended with this process: AIOPSLAB_BIN, ``bin/aiopslab`` of the source
tree, or ``aiopslab`` in PATH.

A session and an environment have tokens of their own, which reach nothing else: hand those, and not
the server's, to an agent that you do not trust.
"""

import atexit
import http.client
import json
import os
import pathlib
import secrets
import select
import shutil
import subprocess
import threading
from typing import Any, Dict, Iterator, List, Optional, Tuple
import urllib.parse


class Error(Exception):
    """What the server answered instead of what it was asked for."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Client:
    """A server. It can be used by several threads at once; each has a connection of its own."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None) -> None:
        if url is None:
            url, token = _find()
        self.url = url.rstrip("/")
        self._token = token
        self._local = threading.local()

    def __reduce__(self) -> Tuple[Any, Tuple[str, Optional[str]]]:
        """A copy, or what another process makes of it, is a client of the same server."""
        return Client, (self.url, self._token)

    def request(self, method: str, path: str, body: Any = None, token: Optional[str] = None) -> Any:
        """Send a request and return the answer: a value out of JSON, or text. The token is the
        server's, unless another is given."""
        response = self._send(method, path, body, token or self._token)
        data = response.read()
        if response.status >= 400:
            raise _error(response, data)
        if response.headers.get_content_type() == "application/json":
            return json.loads(data)
        return data.decode()

    def _send(self, method: str, path: str, body: Any, token: Optional[str]) -> http.client.HTTPResponse:
        headers = _authorization(token)
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(body)
        connection = getattr(self._local, "connection", None)
        if connection is None or _is_stale(connection):
            connection = self._local.connection = self._connect()
        try:
            connection.request(method, path, body, headers)
            return connection.getresponse()
        except BaseException:
            connection.close()
            self._local.connection = None
            raise

    def _connect(self) -> http.client.HTTPConnection:
        parts = urllib.parse.urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname, parts.port)

    def health(self) -> Dict[str, Any]:
        return self.request("GET", "/health")

    def problems(self) -> List[str]:
        """The ids of the problems."""
        return self.request("GET", "/problems")

    def agents(self) -> List[str]:
        """The names of the agents that work by themselves."""
        return self.request("GET", "/agents")

    def actions(self, task: str) -> List[Dict[str, Any]]:
        """The actions of a task: name, kind, documentation and schema of each."""
        return self.request("GET", "/actions/" + urllib.parse.quote(task, safe=""))

    def parse(self, response: str) -> Dict[str, Any]:
        """How the lab reads a response: the call in it."""
        return self.request("POST", "/parse", {"response": response})

    def simulate(self, problem_id: str, agent_name: str, **settings: Any) -> Dict[str, Any]:
        """Take an agent through a problem, and return the session in AIOpsLab's format."""
        return self.request("POST", "/simulate", {"problem_id": problem_id, "agent_name": agent_name, **settings})

    def open(self, problem: str, task: Optional[str] = None, **settings: Any) -> "Session":
        """Begin a session. The problem is an id, or a YAML file of one's own; the task says which of a
        file's problems. The caller is the agent, unless ``agent`` names one."""
        body = _problem(problem)
        if task is not None:
            body["problem"] = task
        answer = self.request("POST", "/sessions", {**body, **settings})
        return Session(self, answer["id"], answer["token"])

    def sessions(self) -> List[Dict[str, Any]]:
        return self.request("GET", "/sessions")

    def make_env(self, problems: Optional[List[str]] = None, **settings: Any) -> Dict[str, Any]:
        """Make an environment for training, and return its id and its token. See :mod:`aiopslab.gym`.
        Without problems, those are drawn from that ``suite``, ``task`` and ``app`` choose. With ``n``,
        so many are made: ``envs`` is a list of them, and ``token`` reaches them all."""
        named = [_problem(p) for p in problems or []]
        body = {
            "problems": [p["problem"] for p in named if "problem" in p],
            "documents": [p["document"] for p in named if "document" in p],
        }
        return self.request("POST", "/envs", {**{k: v for k, v in body.items() if v}, **settings})


def _problem(name: str) -> Dict[str, str]:
    """How a problem is named to the server: by its id, or with the text of its file."""
    if str(name).endswith((".yaml", ".yml")):
        return {"document": pathlib.Path(name).read_text()}
    return {"problem": name}


def _authorization(token: Optional[str]) -> Dict[str, str]:
    return {"Authorization": "Bearer " + token} if token else {}


class Session:
    """A session of a server. Its token is all that its agent needs."""

    def __init__(self, client: Client, id: str, token: Optional[str] = None) -> None:
        self.client = client
        self.id = id
        self.token = token

    def _request(self, method: str, part: str = "", body: Any = None) -> Any:
        return self.client.request(method, "/sessions/" + self.id + part, body, self.token)

    def info(self) -> Dict[str, Any]:
        return self._request("GET")

    def problem(self) -> Dict[str, Any]:
        """Wait until the agent has its turn, and return what it is told."""
        return self._request("GET", "/problem")

    def act(self, response: str) -> Dict[str, Any]:
        """Take a step: text with one call in it."""
        return self._request("POST", "/act", {"response": response})

    def call(self, name: str, **arguments: Any) -> Dict[str, Any]:
        """Take a step: an action by its name."""
        return self._request("POST", "/act", {"name": name, "arguments": arguments})

    def observation(self) -> Dict[str, Any]:
        """What the last step came to, again."""
        return self._request("GET", "/observation")

    def submit(self, answer: Any = None) -> Dict[str, Any]:
        """Hand the answer in, and wait for the outcome. Where an incident asks another question, this is what a step
        comes to, with that ``question``."""
        return self._request("POST", "/submit", {} if answer is None else {"answer": answer})

    def give_up(self, reason: str = "") -> Dict[str, Any]:
        """End the agent's turn as its failure, and wait for the outcome."""
        return self._request("POST", "/give-up", {"reason": reason})

    def outcome(self) -> Dict[str, Any]:
        """Wait for the outcome."""
        return self._request("GET", "/outcome")

    def cancel(self) -> Dict[str, Any]:
        """End the session. What there is is graded. It takes the server's token: an agent gives up."""
        return self.client.request("DELETE", "/sessions/" + self.id)

    def record(self) -> List[Dict[str, Any]]:
        """The events of the record, after the verdict. The first line is its head."""
        return [json.loads(line) for line in self._request("GET", "/record").splitlines()]

    def events(self, last: int = 0) -> Iterator[Dict[str, Any]]:
        """The events as they happen, behind the one with the number ``last``, to the end of the session."""
        connection = self.client._connect()
        try:
            headers = _authorization(self.token or self.client._token)
            if last:
                headers["Last-Event-ID"] = str(last)
            connection.request("GET", "/sessions/" + self.id + "/events", headers=headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise _error(response, response.read())
            for line in response:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        finally:
            connection.close()


def _is_stale(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has closed a connection while nobody used it: there is something to read."""
    return connection.sock is None or bool(select.select([connection.sock], [], [], 0)[0])


def _error(response: http.client.HTTPResponse, data: bytes) -> Error:
    try:
        detail = json.loads(data)["detail"]
    except (ValueError, KeyError, TypeError):
        detail = "%d %s" % (response.status, response.reason)
    return Error(response.status, detail)


_default: Optional[Client] = None
_lock = threading.Lock()


def default() -> Client:
    """The server that is meant if none is named."""
    global _default
    with _lock:
        if _default is None:
            _default = Client()
        return _default


def _find() -> Tuple[str, Optional[str]]:
    url = os.environ.get("AIOPSLAB_URL")
    if url:
        return url, os.environ.get("AIOPSLAB_TOKEN")
    return _start()


def _start() -> Tuple[str, str]:
    """Start a server that ends when this process does."""
    token = secrets.token_hex(16)
    command = [_program(), "serve", "--addr", "127.0.0.1:0", "--until-eof"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "AIOPSLAB_TOKEN": token},
        start_new_session=True,  # Ctrl-C is for this process; the server sees that it ends.
    )
    line = process.stdout.readline().strip()
    if not line.startswith("listening on "):
        raise RuntimeError("%s did not start: exit status %s" % (" ".join(command), process.wait()))

    def stop() -> None:
        process.stdin.close()
        process.wait()

    atexit.register(stop)
    return line.removeprefix("listening on "), token


def _program() -> str:
    given = os.environ.get("AIOPSLAB_BIN")
    if given:
        return given
    built = pathlib.Path(__file__).resolve().parents[3] / "bin" / "aiopslab"
    found = str(built) if built.exists() else shutil.which("aiopslab")
    if not found:
        raise RuntimeError("there is no aiopslab: set AIOPSLAB_BIN to the program, or AIOPSLAB_URL to a server")
    return found
