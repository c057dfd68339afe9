"""Asking for an evaluation: the same function for the command, the Space and the API."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast, get_args

from pydantic import ValidationError

from truegap.errors import UserError
from truegap.leaderboard.checks import PROTOCOLS, TakenError, check_new, check_rate, examine, find_benchmark, find_model
from truegap.leaderboard.limits import Limits
from truegap.leaderboard.request import NOTE, USER, ProfileName, Request, key_of, now, stamp
from truegap.leaderboard.store import Store
from truegap.leaderboard.wish import check_wish, wished_later
from truegap.results.show import plain


def ask(
    store: Store,
    *,
    model: str,
    benchmark: str,
    protocol: str,
    user: str,
    revision: str | None = None,
    profile: str = "lite",
    note: str = "",
    pull_request: bool = False,
    organizations: Collection[str] = (),
    limits: Limits | None = None,
) -> Request:
    """Puts a model into the queue, after every check of a submission.

    In this order: the model exists, its revision is pinned to a commit, a pull request is wished by its author alone,
    nobody has asked for the same (but an author may still wish for a pull request with what was found), it loads
    without remote code, its weights are safetensors, it has a card and a licence, the worker can hold it, and the user
    has not asked for too much. No weights are brought here for that.

    Args:
        store: Where the queue is.
        model: `ORG/NAME` on the Hub, public; a folder where `limits.folders`.
        benchmark: One that the leaderboard offers.
        protocol: One of `truegap evaluate --protocol`.
        user: Who asks: who is logged in, never what somebody typed.
        revision: Branch, tag or commit, resolved to its commit now; the main branch by default.
        profile: `lite` or `full`.
        note: A line for the reader.
        pull_request: Whether the model's author wishes its numbers as a pull request to its repository.
        organizations: Of the user, as the Hub says; only a wish needs them.
        limits: What this leaderboard takes.

    Returns:
        The request as it waits in the queue.

    Raises:
        UserError: A check failed; the reason and the remedy on one line.
    """
    limits = limits or Limits()
    if not USER.fullmatch(user):
        raise UserError("log in first: a request needs the name of a user")
    if protocol not in PROTOCOLS:
        raise UserError(f"protocol {plain(protocol)}: use {', '.join(PROTOCOLS)}")
    if profile not in get_args(ProfileName):
        raise UserError(f"profile {plain(profile)}: use {' or '.join(get_args(ProfileName))}")
    if len(note) > NOTE:
        raise UserError(f"the note has {len(note)} characters, and {NOTE} are shown at most: shorten it")
    asked = find_benchmark(benchmark, limits)
    source = find_model(model, revision, limits)
    if pull_request:
        check_wish(store, source.model, asked.revision, user, organizations)
    key = key_of(source.model, source.revision, asked.version, asked.content, protocol, profile)
    requests = store.requests()
    held = next((each for each in requests if each.key == key), None)
    moment = now()
    if not (pull_request and wished_later(held, moment, limits)):
        check_new(held, moment, limits)
    found = examine(source, limits)
    check_rate(requests, user, moment, limits)
    try:
        request = Request(
            key=key,
            model=source.model,
            revision=source.revision,
            library=found.library,
            benchmark=asked.benchmark,
            benchmark_revision=asked.revision,
            version=asked.version,
            content=asked.content,
            protocol=protocol,
            profile=cast("ProfileName", profile),
            user=user,
            note=plain(note, NOTE),
            pull_request=pull_request,
            model_type=found.model_type,
            parameters=found.parameters,
            licence=found.licence,
            submitted=stamp(moment),
            changed=stamp(moment),
        )
    except ValidationError as error:
        # Such as a folder whose name holds what a page cannot show.
        first = error.errors()[0]
        raise UserError(f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}") from None
    if not store.put_request(request, held):
        raise TakenError(f"model {request.model} was submitted by somebody else just now: see the queue")
    return request
