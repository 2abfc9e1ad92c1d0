"""Environments for training, in the shape of Gymnasium's, and made for it if it is installed.

    with Env("revoke_auth_mongodb-detection-1") as env:
        observation, info = env.reset(seed=1)
        while True:
            observation, reward, terminated, truncated, info = env.step(policy(observation))
            if terminated or truncated:
                break

An action is text with one call in it, or a dictionary with ``name`` and ``arguments``. Between
episodes the application is reset in place, which takes seconds, and fewer of them with noise="none"; a
problem with another application takes a new cluster. At the end of an episode ``info["valid"]`` is
False if it says nothing of the agent, such as when the machine was too busy: leave it out.

With Gymnasium, ``gymnasium.make("AIOpsLab-v0", problems=...)`` makes an Env, ``make_vec`` a VectorEnv.
Without it, both work alike, but have no spaces and give lists instead of arrays.
"""

import concurrent.futures
import string
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import client as _client

try:
    import gymnasium
    import numpy
    from gymnasium.error import ClosedEnvironmentError, ResetNeeded
    from gymnasium.spaces import Text as _Text
    from gymnasium.vector import VectorEnv as _VectorBase
    from gymnasium.vector.utils import batch_space

    from .registration import register

    _Base = gymnasium.Env
    register()

    class AnyText(_Text):  # type: ignore[misc, valid-type]
        """Any text of a length. The charset is what samples are made of; a cluster may well say more."""

        def contains(self, x: Any) -> bool:
            return isinstance(x, str) and len(x) <= self.max_length

        def character_index(self, char: str) -> Any:
            return super().character_index(char if char in self.character_set else "?")

except ImportError:
    numpy = None

    class ClosedEnvironmentError(ValueError):  # type: ignore[no-redef]
        """The environment is closed."""

    class ResetNeeded(ValueError):  # type: ignore[no-redef]
        """No episode is under way."""

    class _Base:  # type: ignore[no-redef]
        metadata: Dict[str, Any] = {}
        render_mode: Optional[str] = None
        spec: Any = None

        @property
        def unwrapped(self) -> "_Base":
            return self

        def reset(self, *, seed: Optional[int] = None, options: Optional[Dict[str, Any]] = None) -> Any:
            return None

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: Any) -> None:
            self.close()

        def close(self) -> None:
            return None

    class _VectorBase(_Base):  # type: ignore[no-redef]
        closed = False

        def close(self, **kwargs: Any) -> None:
            if not self.closed:
                self.close_extras(**kwargs)
                self.closed = True

        def close_extras(self, **kwargs: Any) -> None:
            return None


# How long a text of either side can be, in characters.
MAX_TEXT = 1 << 20


def _text_space() -> Any:
    return AnyText(max_length=MAX_TEXT, min_length=0, charset=string.printable)


# What of the results is counted. Everything else is measured, though it may be a whole number.
_COUNTS = ("steps", "in_tokens", "out_tokens")


def _measured(info: Dict[str, Any]) -> Dict[str, Any]:
    """What is known of an episode, with measures as floats, so that columns of them keep fractions."""
    results = info.get("results")
    if isinstance(results, dict):
        floats = {k: float(v) for k, v in results.items() if type(v) is int and k not in _COUNTS}
        info["results"] = {**results, **floats}
    return info


Action = Union[str, Dict[str, Any]]
Step = Tuple[str, float, bool, bool, Dict[str, Any]]


Problems = Union[str, Sequence[str], None]


def _listed(problems: Problems) -> List[str]:
    return [problems] if isinstance(problems, str) else list(problems or [])


def _reset_body(seed: Optional[int], options: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    body: Dict[str, Any] = {}
    if seed is not None:
        body["seed"] = int(seed)
    if options:
        unknown = sorted(str(key) for key in options if key != "problem")
        if unknown:
            raise ValueError("reset has no option %s; there is: problem" % ", ".join(unknown))
        body["options"] = dict(options)
    return body


def _step_body(action: Action) -> Dict[str, Any]:
    return {"action": action if isinstance(action, dict) else str(action)}


def _step_of(answer: Dict[str, Any]) -> Step:
    a = answer
    return a["observation"], float(a["reward"]), a["terminated"], a["truncated"], _measured(a["info"])


def _restored_of(answer: Dict[str, Any]) -> Step:
    step = _step_of(answer)
    step[4]["restored"] = {k: answer[k] for k in ("steps", "same", "differs") if k in answer}
    return step


class Env(_Base):  # type: ignore[misc, valid-type]
    """One environment. Problems are one id or YAML file, or several to draw from; without any, they are
    drawn from what suite, task and app choose. Settings are those of the API: these three, name, seed,
    noise, max_steps, max_time (in seconds), keep_records, and reward, a dictionary with solved, failed,
    step, invalid, users and discount, or "shaped". With the render mode ansi, it shows the last
    observation."""

    metadata = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        problems: Problems = None,
        client: Optional[_client.Client] = None,
        render_mode: Optional[str] = None,
        **settings: Any,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError("render_mode %r: there is %s" % (render_mode, ", ".join(self.metadata["render_modes"])))
        self.id: Optional[str] = None
        self.render_mode = render_mode
        self.client = client or _client.default()
        if numpy is not None:
            self.observation_space = _text_space()
            self.action_space = _text_space()
        self._shown: Optional[str] = None
        made = self.client.make_env(_listed(problems), **settings)
        self.id, self.token = made["id"], made["token"]

    def _request(self, method: str, part: str, body: Any = None) -> Any:
        if self.id is None:
            raise ClosedEnvironmentError("the environment is closed; make another")
        try:
            return self.client.request(method, "/envs/%s%s" % (self.id, part), body, self.token)
        except _client.Error as e:
            if e.status == 409:
                raise ResetNeeded(str(e)) from None
            if e.status == 404 and "environment" in str(e):
                self.id = None  # Nobody used it for long, and the server has ended it.
                raise ClosedEnvironmentError(str(e)) from None
            raise

    def reset(self, *, seed: Optional[int] = None, options: Optional[Dict[str, Any]] = None) -> Tuple[str, Dict[str, Any]]:
        """Begin an episode: the observation is the whole briefing. A seed begins a new sequence of
        problems and loads; ``options={"problem": id}`` chooses the problem."""
        super().reset(seed=seed, options=options)
        answer = self._request("POST", "/reset", _reset_body(seed, options))
        self._shown = answer["observation"]
        return answer["observation"], answer["info"]

    def step(self, action: Action) -> Step:
        """Take a step."""
        answer = self._request("POST", "/step", _step_body(action))
        self._shown = answer["observation"]
        return _step_of(answer)

    def snapshot(self) -> str:
        """Take a snapshot of the episode, and return its id. It is the way to here: the problem, the seed
        and the steps, which stay in the server. It ends with this environment, or by drop."""
        return self._request("POST", "/snapshot")["id"]

    def restore(self, snapshot: str) -> Step:
        """Begin an episode and take the steps of a snapshot again, of this environment or, if the token
        reaches both, of another. The answer is that of the last step, with the sum of their rewards, and
        ``info["restored"]`` says how many ``steps`` there were, how many had the ``same`` observation but
        for times, and where it first ``differs``. An episode of a search counts in no report."""
        answer = self._request("POST", "/restore", {"snapshot": snapshot})
        self._shown = answer["observation"]
        return _restored_of(answer)

    def drop(self, snapshot: str) -> None:
        """Delete a snapshot of this environment."""
        self._request("DELETE", "/snapshots/" + snapshot)

    def render(self) -> Optional[str]:
        """The last observation, in the render mode ansi."""
        return self._shown if self.render_mode == "ansi" else None

    def close(self) -> None:
        """End the environment. It may be called again."""
        id, self.id = self.id, None
        if id is not None:
            try:
                self.client.request("DELETE", "/envs/" + id, token=self.token)
            except _client.Error as e:
                if e.status != 404:
                    raise


class VectorEnv(_VectorBase):  # type: ignore[misc, valid-type]
    """Several environments side by side, each step of them one request. An episode that has ended is
    followed by the next one in the step after, whose action is not heeded and whose reward is 0.

    An environment whose process dies does not stop the others: its episode is truncated, with reward 0,
    ``valid`` False and the ``error`` in its info, and the next step begins another."""

    metadata: Dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        problems: Problems = None,
        num_envs: int = 1,
        client: Optional[_client.Client] = None,
        seed: int = 1,
        **settings: Any,
    ) -> None:
        self.num_envs = num_envs
        self.ids: List[str] = []
        self._over = [True] * num_envs
        self.client = client or _client.default()
        self._pool = concurrent.futures.ThreadPoolExecutor(2)  # Some are reset while the others step.
        if numpy is not None:
            mode = getattr(gymnasium.vector, "AutoresetMode", None)
            self.metadata = {**self.metadata, "autoreset_mode": mode.NEXT_STEP if mode else "NextStep"}
            self.single_observation_space, self.single_action_space = _text_space(), _text_space()
            self.observation_space = batch_space(self.single_observation_space, num_envs)
            self.action_space = batch_space(self.single_action_space, num_envs)
        made = self.client.make_env(_listed(problems), n=num_envs, seed=seed, **settings)
        self.ids, self.token = [env["id"] for env in made["envs"]], made["token"]

    def _batch(self, what: str, members: Dict[int, Dict[str, Any]]) -> Dict[int, Dict[str, Any]]:
        """Send a request for some of the environments, and return what came of each."""
        if not members:
            return {}
        body = {what + "s": [{"env": self.ids[i], **member} for i, member in members.items()]}
        answer = self.client.request("POST", "/envs/batch/" + what, body, self.token)
        return dict(zip(members, answer["results"]))

    def reset(
        self, *, seed: Union[int, Sequence[Optional[int]], None] = None, options: Optional[Dict[str, Any]] = None
    ) -> Tuple[Tuple[str, ...], Dict[str, Any]]:
        """Begin an episode everywhere. A seed is that of the first; the others have those after it."""
        self._check()
        if seed is None or hasattr(seed, "__index__"):
            super().reset(seed=seed, options=options)
            seeds: List[Optional[int]] = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError("there are %d seeds for %d environments" % (len(seeds), self.num_envs))
        answers = self._batch("reset", {i: _reset_body(s, options) for i, s in enumerate(seeds)})
        self._over = [answers[i].get("error") is not None for i in range(self.num_envs)]
        for answer in answers.values():
            _raise(answer)
        firsts = [answers[i]["first"] for i in range(self.num_envs)]
        return tuple(f["observation"] for f in firsts), self._columns([f["info"] for f in firsts])

    def step(self, actions: Sequence[Action]) -> Tuple[Tuple[str, ...], Any, Any, Any, Dict[str, Any]]:
        """Take a step everywhere."""
        self._check()
        if len(actions) != self.num_envs:
            raise ValueError("there are %d actions for %d environments" % (len(actions), self.num_envs))
        begin = {i: _reset_body(None, None) for i in range(self.num_envs) if self._over[i]}
        go_on = {i: _step_body(actions[i]) for i in range(self.num_envs) if not self._over[i]}
        begun, stepped = self._pool.map(self._batch, ("reset", "step"), (begin, go_on))
        answers = {**begun, **stepped}
        return self._together([self._member(answers[i]) for i in range(self.num_envs)])

    def snapshot(self) -> List[str]:
        """Take a snapshot of each episode, and return their ids. If one cannot be taken, none is kept; if an
        episode is over, none is taken."""
        self._check()
        if any(self._over):
            raise ResetNeeded("no episode is under way in %d of %d environments" % (sum(self._over), self.num_envs))
        answers = self._batch("snapshot", {i: {} for i in range(self.num_envs)})
        try:
            for answer in answers.values():
                _raise(answer)
        except Exception:
            for i, answer in answers.items():
                if "snapshot" in answer:
                    self._drop(self.ids[i], answer["snapshot"]["id"])
            raise
        return [answers[i]["snapshot"]["id"] for i in range(self.num_envs)]

    def restore(self, snapshots: Sequence[str]) -> Tuple[Tuple[str, ...], Any, Any, Any, Dict[str, Any]]:
        """Take each environment to a snapshot of any of them, the same one as often as you like. The
        answer is as that of step; see :meth:`Env.restore`."""
        self._check()
        if len(snapshots) != self.num_envs:
            raise ValueError("there are %d snapshots for %d environments" % (len(snapshots), self.num_envs))
        answers = self._batch("restore", {i: {"snapshot": s} for i, s in enumerate(snapshots)})
        self._over = [answers[i].get("error") is not None for i in range(self.num_envs)]
        for answer in answers.values():
            _raise(answer)
        return self._together([_restored_of(answers[i]["restored"]) for i in range(self.num_envs)])

    def drop(self, snapshot: str) -> None:
        """Delete a snapshot of any of the environments."""
        self._check()
        if not any(self._drop(id, snapshot) for id in self.ids):
            raise _client.Error(404, "there is no snapshot %r" % snapshot)

    def _drop(self, id: str, snapshot: str) -> bool:
        """Delete a snapshot of one environment, if it has it."""
        try:
            self.client.request("DELETE", "/envs/%s/snapshots/%s" % (id, snapshot), token=self.token)
        except _client.Error as e:
            if e.status != 404:
                raise
            return False
        return True

    def _together(self, steps: Sequence[Step]) -> Tuple[Tuple[str, ...], Any, Any, Any, Dict[str, Any]]:
        """What came of steps, as columns."""
        self._over = [terminated or truncated for _, _, terminated, truncated, _ in steps]
        observations, rewards, terminated, truncated, infos = zip(*steps)
        return observations, _array(rewards, float), _array(terminated, bool), _array(truncated, bool), self._columns(infos)

    @staticmethod
    def _member(answer: Dict[str, Any]) -> Step:
        """What came of the step of one environment."""
        if "first" in answer:
            return answer["first"]["observation"], 0.0, False, False, answer["first"]["info"]
        if "result" in answer:
            return _step_of(answer["result"])
        error = answer["error"]
        if error["status"] < 500:
            _raise(answer)
        return "", 0.0, False, True, {"valid": False, "error": error["detail"]}

    def _check(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError("the environments are closed; make others")

    def _columns(self, infos: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
        """What is known of all: a column for each key, and under _key who has it."""
        columns: Dict[str, Any] = {}
        for key in {key: None for info in infos for key in info}:
            has = [key in info for info in infos]
            values = [info.get(key) for info in infos]
            kinds = {type(v) for v, h in zip(values, has) if h}
            kind = kinds.pop() if len(kinds) == 1 else object
            if kind not in (bool, int, float):
                kind = object
            columns[key] = _array([v if h or kind is object else kind() for v, h in zip(values, has)], kind)
            columns["_" + key] = _array(has, bool)
        return columns

    def render(self) -> Optional[Tuple[Any, ...]]:
        return None

    def close_extras(self, **kwargs: Any) -> None:
        for id in self.ids:
            try:
                self.client.request("DELETE", "/envs/" + id, token=self.token)
            except _client.Error as e:
                if e.status not in (401, 404):  # Nobody used them for long, and the server has ended them.
                    raise
        self._pool.shutdown()

    def __enter__(self) -> "VectorEnv":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _raise(answer: Dict[str, Any]) -> None:
    """Raise what is wrong with a member of a batch, if anything is."""
    error = answer.get("error")
    if error is None:
        return
    if error["status"] == 404 and "environment" in error["detail"]:
        raise ClosedEnvironmentError(error["detail"])
    if error["status"] == 409:
        raise ResetNeeded(error["detail"])
    raise _client.Error(error["status"], error["detail"])


def _array(values: Sequence[Any], kind: Any) -> Any:
    """A column: an array if there is numpy."""
    if numpy is None:
        return list(values)
    column = numpy.zeros(len(values), dtype=kind)
    for i, v in enumerate(values):
        column[i] = v
    return column
