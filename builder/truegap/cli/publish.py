"""`truegap publish`: datasets, metrics and Spaces on the Hub, and a run's results on a model's page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truegap.cli.progress import progress

if TYPE_CHECKING:
    from truegap.hub.difference import Difference
    from truegap.hub.publish import Publication, Standing
    from truegap.hub.result_entries import Results

_GROUP = """Publish on the Hub: one commit per version, under a tag that never moves.

--dry-run shows what would change and changes nothing. An interrupted publication shows nothing of itself, and the same
command goes on with it.

Examples:

  truegap publish dataset coco-gender --namespace ORG --dry-run

  truegap publish metric metrics/ygap --namespace ORG --tag v1.0.0
"""
_DATASET = """Publish a built benchmark, or a recipe, as a dataset.

Every row is first compared with the manifest. Images or labels that may not be given away stay here: the recipe is
published instead (ids and what was drawn), and it is said why.

Examples:

  truegap publish dataset coco-gender --namespace ORG --dry-run

  truegap publish dataset coco-gender --namespace ORG --tag v1.0.1
"""
_METRIC = """Publish a folder of metrics/ as an `evaluate` module, with the NumPy core that it needs.

Example:

  truegap publish metric metrics/ygap --namespace ORG --tag v1.0.0
"""
_SPACE = """Publish a folder of spaces/ as a Space, with this truegap in its requirements.

From a checkout a wheel of its code goes along, which the Space installs: no index need have it. Such a Space is public.

Examples:

  truegap publish space spaces/leaderboard --namespace ORG --dry-run

  truegap publish space spaces/leaderboard --namespace ORG
"""
_RESULTS = """Offer a run's numbers to the model's own repository, as a pull request with .eval_results/*.yaml.

One number per task: the bias, and how far the perturbations move it; numbers of --profile lite are tasks of their own.
The benchmark must be published, and asked by a profile, not by --limit. With --row, the numbers are those of a
leaderboard's verified row, named by its key or how that begins: the address of a model's page ends with it.

Examples:

  truegap publish results runs/my-clip --model-repo ORG/my-clip --dry-run

  truegap publish results runs/my-clip --model-repo ORG/my-clip --dataset ORG/coco-gender@v1.0.0

  truegap publish results --row 1a2b3c4d5e6f7a8b --store hf://ORG
"""

Folder = Annotated[Path, typer.Argument(help="The folder.")]
Namespace = Annotated[str, typer.Option(help="User or organization on the Hub.")]
Name = Annotated[str | None, typer.Option(help="Of the repository; by default the benchmark's, or the folder's.")]
Tag = Annotated[str | None, typer.Option(help="The version, vX.Y.Z; by default the benchmark's, or truegap's.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")]
Private = Annotated[bool, typer.Option("--private", help="A new repository is one that only its owners see.")]
_THOUSAND = 1000

AsJson = Annotated[bool, typer.Option("--json", help="Print what became of it as JSON.")]


def register(app: typer.Typer) -> None:
    """Adds the verb and what it can do."""
    verbs = typer.Typer(help=_GROUP, no_args_is_help=True)
    verbs.command("dataset", help=_DATASET)(dataset)
    verbs.command("metric", help=_METRIC)(metric)
    verbs.command("space", help=_SPACE)(space)
    verbs.command("results", help=_RESULTS)(results)
    app.add_typer(verbs, name="publish")


def dataset(
    folder: Folder,
    namespace: Namespace,
    name: Name = None,
    tag: Tag = None,
    dry_run: DryRun = False,
    private: Private = False,
    workers: Annotated[int | None, typer.Option(help="Processes that check rows; default: all cores.")] = None,
    as_json: AsJson = False,
) -> None:
    """See `_DATASET`."""
    from functools import partial
    from tempfile import TemporaryDirectory

    from truegap.engine import run_tasks
    from truegap.hub.publish_dataset import Where, dataset_publication

    _ready(dry_run)
    with TemporaryDirectory(prefix="truegap-") as scratch:
        run = partial(run_tasks, workers=workers)
        made = dataset_publication(folder, Where(namespace, name, tag), Path(scratch), run, progress)
        _publish(made, dry_run=dry_run, private=private, as_json=as_json)


def metric(
    folder: Folder,
    namespace: Namespace,
    tag: Tag = None,
    dry_run: DryRun = False,
    private: Private = False,
    as_json: AsJson = False,
) -> None:
    """See `_METRIC`."""
    from truegap.hub.publish_module import metric_publication

    made = metric_publication(folder, namespace, tag=tag)
    _ready(dry_run)
    _publish(made, dry_run=dry_run, private=private, as_json=as_json)


def space(
    folder: Folder,
    namespace: Namespace,
    name: Name = None,
    tag: Tag = None,
    dry_run: DryRun = False,
    private: Private = False,
    as_json: AsJson = False,
) -> None:
    """See `_SPACE`."""
    from truegap.hub.publish_module import space_publication

    made = space_publication(folder, namespace, name=name, tag=tag, private=private)
    _ready(dry_run)
    _publish(made, dry_run=dry_run, private=private, as_json=as_json)


def results(
    run: Annotated[Path | None, typer.Argument(help="The run's folder.")] = None,
    model_repo: Annotated[
        str | None, typer.Option(help="ORG/MODEL: the repository of the run's model; of a row, it says so itself.")
    ] = None,
    row: Annotated[str | None, typer.Option(help="Instead of a run: the key of a row, or how it begins.")] = None,
    store: Annotated[
        str | None, typer.Option(help="With --row: a folder, or hf://ORG; by default as of `truegap leaderboard`.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="ORG/NAME[@TAG] of the benchmark; by default where the run took it from.")
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """See `_RESULTS`."""
    from truegap.errors import UserError
    from truegap.hub.publish_results import results_offer, send_offer

    if (run is None) == (row is None):
        raise UserError("results takes a run's folder, or --row for one of a leaderboard's: give one of the two")
    _ready(dry_run)
    if row is not None:
        found, repository = _of_row(row, store, model_repo)
    elif run is not None and model_repo is not None:
        found, repository = _of_run(run), model_repo
    else:
        raise UserError("a run needs --model-repo ORG/MODEL: the repository of its model")
    offer = results_offer(found, repository, dataset)
    url = offer.there if dry_run else send_offer(offer)
    state = "same" if offer.there else "to offer" if dry_run else "offered"
    if as_json:
        said = {"state": state, "model": offer.model, "path": offer.path, "tasks": offer.tasks, "url": url}
        typer.echo(json.dumps(said, indent=1))
        return
    typer.echo(f"{offer.model}: {offer.path}\n\n{offer.content.decode()}")
    typer.echo({"same": f"there already: {url}", "offered": f"pull request: {url}"}.get(state, "nothing was sent"))


def _of_run(folder: Path) -> Results:
    from truegap.hub.result_entries import results_of_run
    from truegap.results.runs import read_run

    return results_of_run(read_run(folder))


def _of_row(key: str, store: str | None, model: str | None) -> tuple[Results, str]:
    from truegap.leaderboard import open_store
    from truegap.leaderboard.wish import find_row, model_of, results_of_row

    board = open_store(store)
    row = find_row(board, key)
    return results_of_row(row, board), model or model_of(row)


def _ready(dry_run: bool) -> None:
    """Whether the Hub knows the user, before long work; a look needs no token."""
    from truegap.hub.publish import check_login

    if not dry_run:
        check_login()


def _publish(publication: Publication, *, dry_run: bool, private: bool, as_json: bool) -> None:
    from truegap.hub.publish import publish, standing

    found = standing(publication, private=private) if dry_run else publish(publication, progress, private=private)
    if as_json:
        typer.echo(json.dumps(_record(publication, found), indent=1))
        return
    _say(publication, found)


def _record(publication: Publication, found: Standing) -> dict[str, Any]:
    return {
        "state": found.state,
        "kind": publication.kind,
        "repository": publication.repository,
        "tag": publication.tag,
        "form": publication.form,
        "remarks": list(publication.remarks),
        "commit": found.commit,
        "url": found.url,
        "added": dict(found.difference.added),
        "changed": dict(found.difference.changed),
        "removed": dict(found.difference.removed),
        "same": found.difference.same,
    }


def _say(publication: Publication, found: Standing) -> None:
    typer.echo(f"{publication.kind} {publication.repository} {publication.tag}: {publication.form}")
    for line in publication.remarks:
        typer.echo(line)
    _say_files(found.difference)
    match found.state:
        case "same":
            typer.echo(f"there already, with the same content: {found.url}")
        case "published":
            typer.echo(f"published: {found.url}\ncommit: {found.commit}")
        case state:
            how = {"new": "a new repository", "changed": "one commit", "to tag": "the tag alone"}[state]
            typer.echo(f"nothing was changed; without --dry-run this is {how}: {found.url}")


def _say_files(found: Difference) -> None:
    kinds = (("+", found.added), ("~", found.changed), ("-", found.removed))
    for mark, paths in kinds:
        for path, size in paths.items():
            typer.echo(f"  {mark} {path}  {_bytes(size)}")
    typer.echo(f"files: {found.counts()}, {found.same} the same; {_bytes(found.to_send)} to send")


def _bytes(size: int) -> str:
    """A size as people read it.

    >>> _bytes(999), _bytes(1_234_567)
    ('999 bytes', '1.2 MB')
    """
    if size < _THOUSAND:
        return f"{size} bytes"
    for unit, bytes_in in (("GB", 1e9), ("MB", 1e6)):
        if size >= bytes_in:
            return f"{size / bytes_in:.1f} {unit}"
    return f"{size / _THOUSAND:.1f} kB"
