"""A report on disk: `index.html`, `report.md` and its pictures."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from truegap import __version__
from truegap.errors import UserError
from truegap.figures.findings import goes_beyond
from truegap.figures.labels import RELIANCE, blind, metric_label, metric_meaning, model_size
from truegap.files.atomic import write_bytes
from truegap.report.controls import is_clear
from truegap.report.markdown import Ours, code, escape
from truegap.report.pictures import Picture
from truegap.report.view import ModelView, ReportView, view
from truegap.results.runs import Run
from truegap.results.show import count, interval, number, percent, plain, signed
from truegap.schema import Feature, Strength

HTML = "index.html"
MARKDOWN = "report.md"

_READING = {
    "Bias": "The main score on the original images, over all prompts, with its bootstrap interval over images.",
    "Blind": "What a model that knows nothing of gender is expected to get: a maximum, such as MaxSkew, is above 0.",
    "Δ": "100 x |original - perturbed| / |original|: how far a perturbation moves the bias, in percent. It is never "
    "below 0, so noise alone makes it positive; and where the bias is small it is large for little reason.",
    "Mean Δ": "The mean over the perturbed configs that were run, controls not included.",
    "Noise floor": "Δ of a control: images that were only re-encoded, or only taken to HSV and back. What does not "
    "rise above it cannot be told from the handling of the file.",
    "In pairs": "A perturbation and its control are scored on the same resampled images, so that what both share takes "
    "nothing from the comparison. Δ beyond is the Δ of the first less that of the second; its interval reaches down to "
    "0 or below where the signed difference of the two scores is not clear.",
    "Reliance": "Said only where the whole interval of Δ beyond the control, at the strongest strength, lies above 0; "
    "for objects also of Δ beyond the placebo, where that was run: as much black at places without objects. Not clear "
    "is no proof of absence: a wide interval says that there are too few images to tell. Four features are judged side "
    "by side without a correction for their number.",
    "Limits": "A change says that the score depends on those pixels, not why: damage to a picture can move a score "
    "without its meaning doing so. A model may be biased in ways that these prompts and images do not show.",
}


def write_report(runs: Sequence[Run], out: Path) -> tuple[Path, Path]:
    """Writes the report of one or several runs.

    Args:
        runs: The runs, in the order in which they are shown.
        out: A folder, made where it is absent; an earlier report in it is replaced.

    Returns:
        The HTML page and the Markdown file.

    Raises:
        UserError: There is no run, or `out` cannot be written.
    """
    if not runs:
        raise UserError("no run to report on: give at least one run folder")
    report = view(runs)
    html, markdown = _html().render(_context(report)), _markdown().render(_context(report))
    try:
        out.mkdir(parents=True, exist_ok=True)
        pictures = [(_picture_file(name, each), each) for name, shown in report.pictures for each in shown]
        if pictures:
            (out / "pictures").mkdir(exist_ok=True)
        for file, picture in pictures:
            write_bytes(out / "pictures" / file, picture.data)
        write_bytes(out / MARKDOWN, markdown.encode())
        write_bytes(out / HTML, html.encode())
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror}; choose another --out") from None
    return out / HTML, out / MARKDOWN


def _context(report: ReportView) -> dict[str, Any]:
    return {
        "title": _title(report),
        "report": report,
        "features": [feature.value for feature in Feature],
        "strengths": [strength.value for strength in Strength],
        "reading": _READING,
        "version": __version__,
        "relies": _relies,
        "interval": interval,
        "number": number,
        "percent": percent,
        "signed": signed,
        "picture_file": _picture_file,
    }


def _title(report: ReportView) -> str:
    names = {f"{each.run.record.benchmark.name} {each.run.record.benchmark.version}" for each in report.models}
    benchmark = plain(names.pop()) if len(names) == 1 else f"{len(names)} benchmarks"
    if len(report.models) == 1:
        return f"{plain(report.models[0].run.record.model.name)} on {benchmark}"
    return f"{len(report.models)} runs on {benchmark}"


def _relies(model: ModelView) -> str:
    clear = [RELIANCE[each.feature] for each in model.findings if each.verdict == "reliance"]
    if clear:
        return ", ".join(clear)
    return "not clear" if any(each.verdict == "not clear" for each in model.findings) else "undecided"


def _picture_file(benchmark: str, picture: Picture) -> str:
    """A file name of our own: nothing foreign gets into it."""
    return f"{hashlib.sha256(benchmark.encode()).hexdigest()[:8]}-{picture.config}.jpg"


def _environment(**options: Any) -> Environment:
    made = Environment(  # noqa: S701  HTML is escaped by `autoescape`, Markdown by `finalize`: see the two below
        loader=PackageLoader("truegap.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,
    )
    made.tests |= {"beyond": goes_beyond, "clear": is_clear}
    made.filters |= {
        "number": number,
        "signed": signed,
        "percent": percent,
        "count": count,
        "plain": plain,
        "label": metric_label,
        "meaning": metric_meaning,
        "size": model_size,
        "blind": blind,
    }
    return made


def _html() -> Any:
    made = _environment(autoescape=True)
    assert made.loader is not None
    style = made.loader.get_source(made, "report.css")[0]
    return made.get_template("report.html.j2", globals={"style": Markup(style)})  # noqa: S704  our own file


def _markdown() -> Any:
    made = _environment(autoescape=False, finalize=escape)
    made.filters |= {"ours": Ours, "code": code}
    return made.get_template("report.md.j2")
