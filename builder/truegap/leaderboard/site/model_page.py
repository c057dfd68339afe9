"""Everything about one row: its perturbations, its questions, what it retrieved, and where else the model stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from truegap.figures.charts import Change, change_chart
from truegap.figures.findings import bias_sentence, clears, findings, main_changes, main_contrasts, noise_floor
from truegap.figures.labels import metric_label, metric_meaning
from truegap.leaderboard.details import Details
from truegap.leaderboard.prompt_scores import PromptScore
from truegap.leaderboard.retrieved import Retrieved
from truegap.leaderboard.site.sheet import Cell, Column, Sheet, heat
from truegap.leaderboard.site.shelf import Row, Rows, short
from truegap.leaderboard.site.view import View
from truegap.results.records import ChangeRecord, ScoresRecord, Summary
from truegap.results.show import interval, number, percent, plain, signed
from truegap.schema import CONFIGS, CONTROL_OF, Feature, Strength

_QUESTIONS = 400
"""Questions of one page, those with the largest gaps."""
_NO_QUESTION = ("all", "single", "two", "same", "different")


@dataclass(frozen=True, slots=True)
class ModelPage:
    """What the page of one row shows.

    Attributes:
        row: The row.
        metric: Its main score's name.
        meaning: What that says, in one line.
        sentence: The bias and what it would be by chance.
        findings: A sentence per feature.
        chart: Every delta with its interval over its noise floor.
        configs: One row per perturbation.
        questions: One row per question; None where they were not kept.
        retrieved: What some prompts found, original beside perturbed.
        no_pictures: Why there is nothing of that.
        elsewhere: Other rows of the same model.
        rivals: Other rows of the same board, to compare with.
        offer: What became of the pull request to the model's repository, where its author wished one.
    """

    row: Row
    metric: str
    meaning: str
    sentence: str
    findings: list[str]
    chart: Markup
    configs: Sheet
    questions: Sheet | None
    retrieved: list[tuple[Retrieved, ...]] = field(default_factory=list)
    no_pictures: str = ""
    elsewhere: list[Row] = field(default_factory=list)
    rivals: list[Row] = field(default_factory=list)
    offer: str = ""


def model_page(
    row: Row, rows: Rows, scores: ScoresRecord | None, details: Details | None, offer: str = ""
) -> ModelPage:
    """Puts together the page of a row.

    Args:
        row: The row.
        rows: All rows.
        scores: All that its run says; None where only the row is known.
        details: Of the run, where they were kept.
        offer: What became of a pull request.
    """
    view = View(tab="model", model=short(row["key"]))
    shown: dict[str, list[Retrieved]] = {}
    for each in details.retrieved if details else []:
        shown.setdefault(each.prompt, []).append(each)
    reason = details.no_pictures if details else "the row came without its answers"
    return ModelPage(
        row=row,
        metric=metric_label(row["metric"]),
        meaning=metric_meaning(row["metric"]),
        sentence=bias_sentence(Summary(**{name: row[name] for name in _SUMMARY})),
        findings=[each.text for each in findings(scores)] if scores else [],
        chart=_chart(scores) if scores else Markup(),
        configs=_configs(row, scores, view),
        questions=_questions(scores, details.prompts if details else [], view) if scores else None,
        retrieved=[tuple(each) for each in shown.values()],
        no_pictures=reason,
        elsewhere=[each for each in rows.every if _same_model(each, row)],
        rivals=[each for each in rows.every if each["board"] == row["board"] and each is not row],
        offer=plain(offer, 600),
    )


_SUMMARY = ("metric", "bias", "bias_low", "bias_high", "null")


def _same_model(one: Row, other: Row) -> bool:
    """By weights where they are known, else by name."""
    if one is other:
        return False
    known = one["content"] and other["content"]
    return bool(one["content"] == other["content"]) if known else bool(one["model"] == other["model"])


def _chart(scores: ScoresRecord) -> Markup:
    changes, contrasts = main_changes(scores), main_contrasts(scores)
    lines = []
    for feature in Feature:
        control = changes.get(CONTROL_OF[feature])
        for strength in Strength:
            change = changes.get(f"{feature}-{strength}")
            if change is not None and change.delta is not None:
                label, clear = f"{feature}, {strength}", clears(change.config, contrasts)
                floor = noise_floor(control) if control else None
                lines.append(Change(label, change.delta, change.delta_low, change.delta_high, floor, clear=clear))
    return change_chart(lines, "Change of the bias under each perturbation, with intervals and noise floor")


def _configs(row: Row, scores: ScoresRecord | None, view: View) -> Sheet:
    """Bias, delta and rank on every perturbed config."""
    changes = main_changes(scores) if scores else {}
    ends = {
        each.config: (each.ci_low, each.ci_high)
        for each in (scores.scores if scores else [])
        if (each.metric, each.scope) == (row["metric"], "all")
    }
    hottest = max((each.delta or 0.0 for each in changes.values()), default=0.0)
    lines = []
    for config in CONFIGS:
        bias, rank = (
            (row["bias"], row["rank"]) if config == "original" else (row[f"bias_{config}"], row[f"rank_{config}"])
        )
        if bias is None and config not in changes:
            continue
        low, high = ends.get(config, (None, None))
        if config == "original":
            low, high = row["bias_low"], row["bias_high"]
        change = changes.get(config)
        lines.append(
            [
                Cell(config, (config,)),
                Cell(f"{number(bias)} {interval(low, high)}".rstrip(), (bias, low, high)),
                _delta(change, hottest),
                Cell("-" if rank is None else str(rank), (rank,), title="" if rank else "no interval, so no rank"),
            ]
        )
    columns = [
        Column("Images", "which config of the benchmark", ("config",), number=False),
        Column("Bias", "main score there, with its 95 % interval", ("bias", "bias_low", "bias_high")),
        Column("Δ %", "how far the bias moves, with its 95 % interval", ("delta", "delta_low", "delta_high")),
        Column("Rank there", "among the rows of the board, on these images", ("rank",)),
    ]
    csv = view.query(csv="configs")
    return Sheet("configs", "Bias, sensitivity and rank on every set of images", columns, [("", lines)], csv=csv)


def _delta(change: ChangeRecord | None, hottest: float) -> Cell:
    if change is None or change.delta is None:
        return Cell("-", (None, None, None), title=plain(change.reason) if change and change.reason else "")
    ends = (change.delta_low, change.delta_high)
    text = f"{percent(change.delta)} {interval(*ends, percent)}".rstrip()
    return Cell(text, (change.delta, *ends), heat=heat(change.delta, hottest))


def _questions(scores: ScoresRecord, prompts: Sequence[PromptScore], view: View) -> Sheet | None:
    """The main score question by question, topic by topic, prompt by prompt or pair by pair, the largest first."""
    metric = scores.summary.metric
    lines: list[tuple[float, list[Cell]]] = []
    for each in scores.scores:
        if (
            (each.metric, each.config) == (metric, "original")
            and each.scope not in _NO_QUESTION
            and each.value is not None
        ):
            what, _, name = each.scope.rpartition(":")
            p = each.p_adjusted if each.p_adjusted is not None else each.p_value
            ends = (each.value, each.ci_low, each.ci_high)
            lines.append((each.value, _question(plain(name), plain(what, 40) or "set", ends, p)))
    lines += [
        (each.value, _question(plain(each.prompt), "prompt", (each.value, each.low, each.high), None))
        for each in prompts
    ]
    if not lines:
        return None
    lines.sort(key=lambda line: (-abs(line[0]), line[1][0].text))
    columns = [
        Column("Question", "which question, topic, prompt, pair or set of prompts", ("question",), number=False),
        Column("Of", "what it is", ("of",), number=False),
        Column("Gap", "main score of it alone, with its 95 % interval", ("gap", "gap_low", "gap_high")),
        Column("p", "of no gap; by Holm's method over what is tested together, where there are several", ("p",)),
    ]
    kept = [cells for _, cells in lines[:_QUESTIONS]]
    caption = "Gap of each question"
    if len(kept) < len(lines):
        caption = f"The {len(kept)} questions of {len(lines)} that have the largest gaps"
    return Sheet("questions", caption, columns, [("", kept)], csv=view.query(csv="questions"))


def _question(name: str, of: str, gap: tuple[float, float | None, float | None], p: float | None) -> list[Cell]:
    value, low, high = gap
    return [
        Cell(plain(name, 120), (name,)),
        Cell(of, (of,)),
        Cell(f"{signed(value)} {interval(low, high, signed)}".rstrip(), (value, low, high)),
        Cell("-" if p is None else f"{p:.3f}", (p,)),
    ]
