"""The HTTP API of ``aiopslab serve``.

The server is the one at AIOPSLAB_URL (with AIOPSLAB_TOKEN), if that is set. Otherwise one is started
when it is first needed, and ended with this process: AIOPSLAB_BIN, ``bin/aiopslab`` of the source
tree, or ``aiopslab`` in PATH.
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
import urllib.parse


class Error(Exception):
    """What the server answered instead of what it was asked for."""

    def __init__(self, status, detail):
        super().__init__(detail)
        self.status = status


class Client:
    """A server. It can be used by several threads at once; each has a connection of its own."""

    def __init__(self, url=None, token=None):
        if url is None:
            url, token = _find()
        self.url = url.rstrip("/")
        self._token = token
        self._local = threading.local()

    def request(self, method, path, body=None):
        """Send a request and return the answer: a value out of JSON, or text."""
        response = self._send(method, path, body)
        data = response.read()
        if response.status >= 400:
            raise _error(response, data)
        if response.headers.get_content_type() == "application/json":
            return json.loads(data)
        return data.decode()

    def _send(self, method, path, body):
        headers = {"Authorization": "Bearer " + self._token} if self._token else {}
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

    def _connect(self):
        parts = urllib.parse.urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname, parts.port)

    def health(self):
        return self.request("GET", "/health")

    def problems(self):
        """The ids of the problems."""
        return self.request("GET", "/problems")

    def agents(self):
        """The names of the agents that work by themselves."""
        return self.request("GET", "/agents")

    def simulate(self, problem_id, agent_name, **settings):
        """Take an agent through a problem, and return the session in AIOpsLab's format."""
        return self.request("POST", "/simulate", {"problem_id": problem_id, "agent_name": agent_name, **settings})

    def open(self, problem, **settings):
        """Begin a session. The caller is the agent, unless ``agent`` names one."""
        return Session(self, self.request("POST", "/sessions", {"problem": problem, **settings})["id"])

    def sessions(self):
        return self.request("GET", "/sessions")

    def make_env(self, **settings):
        """Make an environment for training, and return its id. See :mod:`aiopslab.gym`."""
        return self.request("POST", "/envs", settings)["id"]


class Session:
    """A session of a server."""

    def __init__(self, client, id):
        self.client = client
        self.id = id

    def _request(self, method, part="", body=None):
        return self.client.request(method, "/sessions/" + self.id + part, body)

    def info(self):
        return self._request("GET")

    def problem(self):
        """Wait until the agent has its turn, and return what it is told."""
        return self._request("GET", "/problem")

    def act(self, response):
        """Take a step: text with one call in it."""
        return self._request("POST", "/act", {"response": response})

    def call(self, name, **arguments):
        """Take a step: an action by its name."""
        return self._request("POST", "/act", {"name": name, "arguments": arguments})

    def observation(self):
        """What the last step came to, again."""
        return self._request("GET", "/observation")

    def submit(self, answer=None):
        """Hand the answer in, and wait for the outcome."""
        return self._request("POST", "/submit", {} if answer is None else {"answer": answer})

    def give_up(self, reason=""):
        """End the agent's turn as its failure, and wait for the outcome."""
        return self._request("POST", "/give-up", {"reason": reason})

    def outcome(self):
        """Wait for the outcome."""
        return self._request("GET", "/outcome")

    def cancel(self):
        """End the session. What there is is graded."""
        return self._request("DELETE")

    def record(self):
        """The events of the record, after the verdict. The first line is its head."""
        return [json.loads(line) for line in self._request("GET", "/record").splitlines()]

    def events(self, last=0):
        """The events as they happen, behind the one with the number ``last``, to the end of the session."""
        connection = self.client._connect()
        try:
            headers = {"Last-Event-ID": str(last)} if last else {}
            if self.client._token:
                headers["Authorization"] = "Bearer " + self.client._token
            connection.request("GET", "/sessions/" + self.id + "/events", headers=headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise _error(response, response.read())
            for line in response:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        finally:
            connection.close()


def _is_stale(connection):
    """Whether the server has closed a connection while nobody used it: there is something to read."""
    return connection.sock is None or bool(select.select([connection.sock], [], [], 0)[0])


def _error(response, data):
    try:
        detail = json.loads(data)["detail"]
    except (ValueError, KeyError, TypeError):
        detail = "%d %s" % (response.status, response.reason)
    return Error(response.status, detail)


_default = None
_lock = threading.Lock()


def default():
    """The server that is meant if none is named."""
    global _default
    with _lock:
        if _default is None:
            _default = Client()
        return _default


def _find():
    url = os.environ.get("AIOPSLAB_URL")
    if url:
        return url, os.environ.get("AIOPSLAB_TOKEN")
    return _start()


def _start():
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

    def stop():
        process.stdin.close()
        process.wait()

    atexit.register(stop)
    return line.removeprefix("listening on "), token


def _program():
    given = os.environ.get("AIOPSLAB_BIN")
    if given:
        return given
    built = pathlib.Path(__file__).resolve().parents[3] / "bin" / "aiopslab"
    found = str(built) if built.exists() else shutil.which("aiopslab")
    if not found:
        raise RuntimeError("there is no aiopslab: set AIOPSLAB_BIN to the program, or AIOPSLAB_URL to a server")
    return found
