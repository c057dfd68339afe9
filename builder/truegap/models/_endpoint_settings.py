"""Which server is asked, for which model, how fast and at what price."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from truegap.errors import UserError

_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OURS = ("model", "messages", "stream", "n", "logprobs", "top_logprobs", "state", "questions", "assets")
_FILES = (".yaml", ".yml", ".json")
_HOW = "endpoint:http://HOST:PORT/v1#MODEL, or endpoint:FILE.yaml with url and model"


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not url.isascii() or not url.isprintable():
        raise ValueError("give http://HOST:PORT/v1 or https://…")
    if parts.port == 0 or " " in url:  # a port that is no number raises by itself
        raise ValueError("give http://HOST:PORT/v1 or https://…")
    if parts.username is not None or parts.password is not None:
        raise ValueError("it holds a user name or password: name an environment variable with api_key_env instead")
    if parts.query or parts.fragment:
        raise ValueError("give it without ? and #")
    return url.rstrip("/")


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError("give the name of an environment variable that holds the key, not the key")
    return name


def _not_ours(extra: dict[str, Any]) -> dict[str, Any]:
    if taken := sorted(set(extra) & set(_OURS)):
        raise ValueError(f"{', '.join(taken)}: set by truegap itself")
    return extra


class EndpointSettings(BaseModel):
    """How a server is asked; an unknown key is an error.

    Those of the first group decide what is answered, and are part of what identifies the model; the others do not.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: Annotated[str, AfterValidator(_address)]
    """Where the API begins, such as `https://api.openai.com/v1`."""
    model: str = Field(min_length=1, max_length=500)
    """Its name there."""
    api: Literal["chat", "systemone"] = "chat"
    """`chat`: chat completions, as every OpenAI-compatible server has them. `systemone`: typed questions, of which
    `transformers serve` gives the probability of every option, among the options."""
    image: Literal["png", "jpeg"] = "png"
    """How images are sent: without loss, or as JPEG of quality 95."""
    top_logprobs: int = Field(default=20, ge=0, le=100)
    """How many of the next token's log-probabilities are asked for; with 0, answers are written and read."""
    max_tokens: int = Field(default=16, ge=1)
    """Length of a written answer; models that think before they answer need thousands."""
    seed: int = 0
    extra: Annotated[dict[str, Any], AfterValidator(_not_ours)] = Field(default_factory=dict)
    """Added to every request, such as `{chat_template_kwargs: {enable_thinking: false}}`."""

    api_key_env: Annotated[str, AfterValidator(_variable)] | None = None
    """Name of the environment variable that holds the key; the key itself is neither shown nor recorded."""
    api_key_header: str = Field(default="Authorization", pattern=r"^[A-Za-z][A-Za-z0-9-]*$")
    """Where it goes: `Authorization` (after the word Bearer), or a header of its own, such as `api-key`."""
    concurrency: int = Field(default=8, ge=1, le=1024)
    """Requests under way at a time."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    timeout: float = Field(default=120, gt=0)
    """Seconds for one request, from beginning to end."""
    attempts: int = Field(default=6, ge=1, le=100)
    """Of every request, where another may help."""
    backoff: float = Field(default=1, ge=0)
    """Seconds before the second attempt, doubled with each further one."""
    longest_wait: float = Field(default=300, gt=0)
    """Seconds; a server that asks for a longer pause is not waited for."""
    input_price: float = Field(default=0, ge=0)
    """Per million tokens read, in whatever currency."""
    output_price: float = Field(default=0, ge=0)
    """Per million tokens written."""

    def asked(self) -> dict[str, Any]:
        """What decides the answers."""
        names = ("url", "model", "api", "image", "top_logprobs", "max_tokens", "seed", "extra")
        return {name: getattr(self, name) for name in names}

    def content(self, *more: str | None) -> str:
        """SHA-256 over what decides the answers, and more of it."""
        return hashlib.sha256(json.dumps([self.asked(), more], sort_keys=True).encode()).hexdigest()

    def headers(self) -> dict[str, str]:
        """The key, where one is asked for.

        Raises:
            UserError: The environment has no such variable, or what it holds is no key.
        """
        if self.api_key_env is None:
            return {}
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise UserError(
                f"endpoint {self.url}: the environment variable {self.api_key_env} is not set; put the key there"
            )
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise UserError(
                f"endpoint {self.url}: what {self.api_key_env} holds is no key: blanks or special characters"
            )
        return {self.api_key_header: f"Bearer {key}" if self.api_key_header.lower() == "authorization" else key}

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine."""
        host = urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


def settings_of(identifier: str) -> EndpointSettings:
    """Settings from `URL#MODEL`, or from a YAML or JSON file.

    Raises:
        UserError: It is neither, or a setting is not usable; the line repeats no value, since it may be a secret.
    """
    if "://" in identifier:
        url, _, model = identifier.partition("#")
        if not model:
            raise UserError(f"endpoint: the model's name is missing after the address: {_HOW}")
        return _valid({"url": url, "model": model}, "endpoint")
    path = Path(identifier).expanduser()
    if path.suffix.lower() not in _FILES:
        raise UserError(f"endpoint {identifier}: neither an address nor a .yaml or .json file: {_HOW}")
    return _valid(_read(path), f"endpoint {path}")


def _read(path: Path) -> Any:
    import yaml

    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"endpoint {path}: {error.strerror or 'cannot be read'}; {_HOW}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise UserError(f"endpoint {path}: not YAML" + (f" (line {mark.line + 1})" if mark else "")) from None


def _valid(found: Any, what: str) -> EndpointSettings:
    try:
        return EndpointSettings.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UserError(f"{what}: {where}: {first['msg'].removeprefix('Value error, ')}") from None
