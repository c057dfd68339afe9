"""A row's numbers for the model's own repository: on its author's wish, as one pull request."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path

from truegap.errors import UserError
from truegap.hub.result_entries import Results
from truegap.hub.snapshots import is_repository, split_revision
from truegap.leaderboard.checks import TakenError
from truegap.leaderboard.job import clean
from truegap.leaderboard.limits import Limits
from truegap.leaderboard.request import REASON, Request
from truegap.leaderboard.row import Row
from truegap.leaderboard.store import HUB, Store
from truegap.results.show import plain

_KEY = 12


def check_wish(
    store: Store, model: str, benchmark_revision: str | None, user: str, organizations: Collection[str]
) -> None:
    """Whether somebody may wish for a pull request: on the Hub, and only whoever the model belongs to.

    Args:
        store: Where the queue is.
        model: As the Hub spells it, or a folder.
        benchmark_revision: The benchmark's commit; None for a folder.
        user: Who asks.
        organizations: Of the user, as the Hub says.

    Raises:
        UserError: They may not, or there is nothing to open one for.
    """
    _check_published(store.where, model, benchmark_revision)
    author = model.partition("/")[0]
    if author not in {user, *organizations}:
        raise UserError(
            f"model {model}: a pull request is opened on the wish of {author} alone, and you are logged in as {user}: "
            "ask without it"
        )


def wished_later(held: Request | None, moment: datetime, limits: Limits) -> bool:
    """Whether what was evaluated may be asked for again, for the pull request alone: the row is found, and kept.

    Args:
        held: The request for the same that is there.
        moment: Now.
        limits: How soon what failed may be tried again.

    Raises:
        TakenError: It was wished for already and could not be opened a short while ago.
    """
    if held is None or held.state != "FINISHED" or held.pull_request_url is not None:
        return False
    again = datetime.fromisoformat(held.changed) + timedelta(seconds=limits.again)
    if held.pull_request and again > moment:
        raise TakenError(
            f"model {held.model}: its pull request was {held.offer}; or ask again after {again:%Y-%m-%d %H:%M} UTC"
        )
    return True


def grant(store: Store, request: Request, row: Row) -> dict[str, str | None]:
    """Opens the pull request that a request wishes for, or finds the one that is open or merged.

    Nothing that fails here is raised: the row stands, and the request says why there is no pull request.

    Args:
        store: Where the row is.
        request: Whose evaluation is done.
        row: What came out.

    Returns:
        What the request says of it, by field; nothing where nobody wishes for one.
    """
    from truegap.hub.publish_results import results_offer, send_offer

    if not request.pull_request:
        return {}
    try:
        _check_published(store.where, request.model, request.benchmark_revision)
        url = send_offer(results_offer(results_of_row(row, store), request.model))
    except Exception as error:  # noqa: BLE001  # whatever the Hub or a repository does, the evaluation is done
        said = str(error) if isinstance(error, UserError) else f"the worker itself failed: {type(error).__name__}"
        remedy = f"; `truegap publish results --row {row.key[:_KEY]} --store {store.where}` opens it later"
        reason = plain(clean(said, Path.home()), REASON - len(remedy))
        return {"pull_request_url": None, "pull_request_reason": plain(reason + remedy, REASON)}
    return {"pull_request_url": plain(url, REASON), "pull_request_reason": ""}


def find_row(store: Store, key: str) -> Row:
    """The one row whose key begins so.

    Raises:
        UserError: There is none, or several begin like it.
    """
    found = [each for each in store.read().rows if each.key.startswith(key)]
    if len(found) != 1:
        raise UserError(
            f"{plain(key)} is the beginning of {len(found) or 'no'} keys of rows in {store.where}: the address of a "
            "model's page ends with its row's"
        )
    return found[0]


def results_of_row(row: Row, store: Store) -> Results:
    """What a row says of a model on the Hub.

    Raises:
        UserError: The store's own worker did not find it, or the model is a folder.
    """
    name = f"row {row.key[:_KEY]}"
    if row.kind != "verified":
        raise UserError(
            f"{name}: of kind {row.kind}, and only what the store's own worker found is offered: give the run itself, "
            "`truegap publish results RUN --model-repo ORG/MODEL`"
        )
    if row.model.revision is None or not is_repository(model_of(row)):
        raise UserError(
            f"{name}: its model is a folder, which has no page on the Hub: upload it there and submit that one"
        )
    source = None
    if store.where.startswith(HUB):
        from huggingface_hub import constants

        organization = store.where.removeprefix(HUB)
        source = f"{constants.ENDPOINT}/datasets/{organization}/results/blob/main/results/{row.key}.json"
    return Results(
        name=name,
        model=row.model,
        benchmark=row.benchmark,
        protocol=row.protocol,
        options=row.options,
        configs=row.configs,
        summary=row.summary,
        run_id=row.run_id,
        truegap=row.truegap,
        date=row.submitted,
        source=source,
    )


def model_of(row: Row) -> str:
    """The repository of a row's model, as `ORG/NAME`."""
    return split_revision(row.model.spec.removeprefix("hf-hub:"))[0]


def _check_published(where: str, model: str, benchmark_revision: str | None) -> None:
    if not where.startswith(HUB):
        raise UserError(
            "a pull request is opened by a leaderboard on the Hub (--store hf://ORG); of a row in a folder "
            "`truegap publish results --row KEY` opens it"
        )
    if not is_repository(model):
        raise UserError("a pull request needs a model on the Hub, and this is a folder: upload it there first")
    if benchmark_revision is None:
        raise UserError(
            "a model's page shows numbers on published benchmarks alone: `truegap publish dataset` this one, and ask "
            "for ORG/NAME@TAG"
        )
