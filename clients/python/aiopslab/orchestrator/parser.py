"""How the lab reads an agent's response."""

from typing import Any, Dict, Optional

from .. import client as _client
from ..utils.status import ResponseParsingError

_PREFIX = "Error parsing response: "


class ResponseParser:
    """Reads the call in a response as the lab does: the server is asked."""

    def __init__(self, client: Optional[_client.Client] = None) -> None:
        self._client = client

    def parse(self, response: str) -> Dict[str, Any]:
        """The call: api_name, args, kwargs, and context, the text around the block it is in."""
        client = self._client or _client.default()
        try:
            call = client.parse(response)
        except _client.Error as e:
            if e.status != 422 or not str(e).startswith(_PREFIX):
                raise
            raise ResponseParsingError(str(e)[len(_PREFIX) :]) from None
        return {"api_name": call["name"], "args": call["args"], "kwargs": call["kwargs"], "context": call["context"]}
