"""Audit of the printed tables of Hirota et al. (2025): sensitivity, its correlation with Acc_b, rank changes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

from truegap.results.audit_finding import Cell, Finding, Verdict, cell, tally
from truegap.results.audit_rounding import Range, change_percent, correlation, printed
from truegap.results.published import HIROTA, TABLES, rows
from truegap.schema import Feature, Strength
from truegap.scores import feature_sensitivity, kendall, pearson, rank_change

Key = tuple[str, str, str, str]
"""Benchmark, model, feature, strength (or `original`)."""

DECIMALS = 2
THRESHOLD = Fraction("0.5")
"""Of |YGap x 100| on the original images, below which the published table gives no sensitivity."""

_ANSWERS = 200
_KINDS = {
    "ygap": ("YGap", "ygap", "delta_ygap", "generative models"),
    "max-skew": ("MaxSkew@1000", "maxskew_at_1000", "delta_maxskew", "dual encoders"),
}


def findings() -> Iterator[Finding]:
    """Every finding on this paper."""
    for kind in _KINDS:
        yield _deltas(kind)
    yield _exclusion()
    yield _signs()
    yield _correlation("max-skew", "0.54")
    yield _correlation("ygap", "0.31")
    yield _lighting()
    yield _largest("ygap", 175)
    yield _largest("max-skew", 43)
    for kind in _KINDS:
        yield _ranks(kind)
    yield _sizes()
    yield _objects()
    yield _recognition()
    yield Finding(
        "accuracy",
        HIROTA,
        "Acc_b of every feature",
        "32 accuracies, mean and sd of five seeds",
        "the seeds' own accuracies are not printed",
        Verdict.OPEN,
        ("spurious_accuracy",),
    )


def scores(name: str) -> dict[Key, str]:
    """The printed cells of one of the long tables, by benchmark, model, feature and strength."""
    *_, value = rows(name)[0]
    return {(row["benchmark"], row["model"], row["feature"], row["strength"]): row[value] for row in rows(name)}


def _where(key: Key) -> str:
    return ", ".join(key)


def _deltas(kind: str) -> Finding:
    """Each printed delta against the ratio of the two printed scores."""
    metric, name, delta, models = _KINDS[kind]
    score = scores(name)
    cells = []
    for key, text in scores(delta).items():
        before, after = score[*key[:3], "original"], score[key]
        possible = change_percent(printed(before, DECIMALS), printed(after, DECIMALS))
        value = feature_sensitivity([float(before)], [float(after)], threshold=None).delta
        cells.append(cell(_where(key), text, DECIMALS, possible, value))
    larger = sum(each.high is not None and float(each.printed) > each.high for each in cells if _fails(each))
    failing = sum(map(_fails, cells))
    note = f"of those that do not, {larger} are printed larger and {failing - larger} smaller than what follows"
    if kind == "max-skew":
        note += "; most larger, as a mean over draws of absolute ratios would be: the rule is not stated"
    return tally(
        f"{kind}-delta",
        HIROTA,
        f"sensitivity of {metric}, {models}",
        f"{len(cells)} deltas",
        cells,
        sources=(name, delta),
        found=f"{failing} do not follow from the printed scores as a ratio of means",
        note=note,
    )


def _fails(each: Cell) -> bool:
    return each.verdict is Verdict.FAILS


def _exclusion() -> Finding:
    """Which YGap cells have no delta: those whose original is below a threshold that is not stated."""
    score, delta = scores("ygap"), scores("delta_ygap")
    sizes: dict[bool, list[Fraction]] = {True: [], False: []}
    cells = []
    for key in score:
        if key[3] == "original":
            continue
        original = score[*key[:3], "original"]
        size = abs(Fraction(original))
        sizes[key in delta].append(size)
        verdict = Verdict.FOLLOWS if (key in delta) == (size >= THRESHOLD) else Verdict.FAILS
        cells.append(Cell(_where(key), "kept" if key in delta else "left out", float(size) / 100, None, None, verdict))
    kept, dropped = float(min(sizes[True])) / 100, float(max(sizes[False])) / 100
    return tally(
        "ygap-exclusion",
        HIROTA,
        "YGap cells without a sensitivity",
        f"{len(sizes[False])} of {len(cells)} cells left out",
        cells,
        sources=("ygap", "delta_ygap"),
        found=f"|original| < 0.005 gives the same cells; smallest kept {kept:.4f}, largest left out {dropped:.4f}",
    )


def _signs() -> Finding:
    """The original score stands once per feature: the same number each time?"""
    cells = []
    for _, name, _, _ in _KINDS.values():
        originals: dict[tuple[str, str], list[str]] = {}
        for key, text in scores(name).items():
            if key[3] == "original":
                originals.setdefault((key[0], key[1]), []).append(text)
        for place, texts in originals.items():
            verdict = Verdict.FOLLOWS if len(set(texts)) == 1 else Verdict.FAILS
            cells.append(Cell(", ".join(place), " / ".join(dict.fromkeys(texts)), None, None, None, verdict))
    return tally(
        "original-repeated",
        HIROTA,
        "scores on the original images, printed once per feature",
        "the same number in each of four places",
        cells,
        sources=tuple(name for _, name, _, _ in _KINDS.values()),
    )


def _correlation(kind: str, claim: str) -> Finding:
    """Pearson's r of Acc_b (ConvNeXt-B) and delta over all printed cells."""
    _, _, delta, models = _KINDS[kind]
    accuracy = {(r["backbone"], r["benchmark"], r["feature"]): r["accuracy_percent"] for r in rows("spurious_accuracy")}
    cells = scores(delta)
    texts = [accuracy["convnext_base", key[0], key[2]] for key in cells]
    possible = correlation(
        [printed(text, TABLES["spurious_accuracy"].decimals) for text in texts],
        [printed(text, DECIMALS) for text in cells.values()],
    )
    deltas = [float(text) for text in cells.values()]
    r = pearson([float(text) for text in texts], deltas)
    other = pearson([float(accuracy["resnet50", key[0], key[2]]) for key in cells], deltas)
    found = cell(f"{len(cells)} cells", claim, DECIMALS, possible, r)
    return Finding(
        f"{kind}-correlation",
        HIROTA,
        f"Pearson r of Acc_b and delta, {models}",
        claim,
        f"{r:.3f} over {len(cells)} cells, {found.low:.3f} to {found.high:.3f} with their rounding",
        found.verdict,
        ("spurious_accuracy", delta),
        (found,),
        note=f"Acc_b of ConvNeXt-B; {other:.3f} with ResNet-50's",
    )


def _lighting() -> Finding:
    """The text says that lighting moves dual encoders by less than 2 %."""
    cells = []
    for key, text in scores("delta_maxskew").items():
        if key[2] == Feature.LIGHTING:
            verdict = Verdict.FOLLOWS if printed(text, DECIMALS).low < 2 else Verdict.FAILS  # noqa: PLR2004  the claim
            cells.append(Cell(_where(key), text, None, None, None, verdict))
    over = sum(map(_fails, cells))
    found = f"{over} of {len(cells)} exceed it"
    figure, sources = "lighting effects, dual encoders", ("delta_maxskew",)
    return tally("lighting", HIROTA, figure, "< 2 %", cells, sources=sources, found=found)


def _largest(kind: str, claim: int) -> Finding:
    """The abstract: even minimal perturbations shift scores by up to so many percent."""
    metric, _, delta, models = _KINDS[kind]
    cells = scores(delta)

    def largest(strengths: tuple[str, ...]) -> tuple[float, Key]:
        return max((float(text), key) for key, text in cells.items() if key[3] in strengths)

    weak, where = largest((Strength.WEAK,))
    most, place = largest(tuple(Strength))
    found = cell(_where(where), str(claim), 0, printed(str(weak), DECIMALS), weak)
    return Finding(
        f"{kind}-largest",
        HIROTA,
        f"largest sensitivity of {metric}, {models}",
        f"up to {claim} % under minimal perturbations",
        f"{weak:.2f} % under weak ones ({_where(where)})",
        found.verdict,
        (delta,),
        (found,),
        note=f"over all strengths it is {most:.2f} % ({_where(place)})",
    )


def _ranks(kind: str) -> Finding:
    """Do models change places by |bias|? Only where rounding cannot explain it."""
    metric, name, _, models = _KINDS[kind]
    score = scores(name)
    names = list(dict.fromkeys(key[1] for key in score))
    cells, taus, farthest = [], [], (0.0, "")
    for benchmark in dict.fromkeys(key[0] for key in score):
        for feature in Feature:
            for strength in Strength:
                before = [score[benchmark, model, feature, "original"] for model in names]
                after = [score[benchmark, model, feature, strength] for model in names]
                sizes = [[abs(float(text)) for text in texts] for texts in (before, after)]
                change, tau = rank_change(names, *sizes), kendall(*sizes)
                taus.append(1.0 if tau is None else tau)
                place = f"{benchmark}, {feature}, {strength}"
                move = change.moves[0]
                farthest = max(farthest, (abs(move.moved), f"{move.name} ({place})"))
                verdict = Verdict.FOLLOWS if _reordered(before, after) else Verdict.FAILS
                cells.append(Cell(place, "order changes", tau, None, None, verdict))
    changed = sum(not _fails(each) for each in cells)
    return Finding(
        f"{kind}-ranks",
        HIROTA,
        f"order of {models} by |{metric}|",
        "perturbations reorder models",
        f"in {changed} of {len(cells)} perturbed sets two models change places beyond rounding",
        Verdict.FOLLOWS if changed else Verdict.FAILS,
        (name,),
        tuple(cells),
        note=f"Kendall's tau with the original order is at least {min(taus):.2f}; farthest move: {farthest[1]}, "
        f"{farthest[0]:g} places",
    )


def _reordered(before: list[str], after: list[str]) -> bool:
    old, new = ([abs(printed(text, DECIMALS)) for text in texts] for texts in (before, after))
    return any(
        (_below(old[a], old[b]) and _below(new[b], new[a])) or (_below(old[b], old[a]) and _below(new[a], new[b]))
        for a, b in combinations(range(len(old)), 2)
    )


def _below(one: Range, other: Range) -> bool:
    return one.high < other.low


def _sizes() -> Finding:
    cells = []
    for row in rows("benchmark_sizes"):
        total = Fraction(int(row["woman"]) + int(row["man"]))
        cells.append(cell(row["benchmark"], row["total"], 0, Range(total, total)))
    return tally(
        "sizes", HIROTA, "images of each benchmark", "women and men make the total", cells, sources=("benchmark_sizes",)
    )


def _objects() -> Finding:
    """The object classifier reads no pixels: its accuracy must not depend on the image backbone."""
    accuracy = {(r["backbone"], r["benchmark"]): r for r in rows("spurious_accuracy") if r["feature"] == Feature.OBJECT}
    cells = []
    for (backbone, benchmark), row in accuracy.items():
        if backbone == "resnet50":
            other = accuracy["convnext_base", benchmark]["accuracy_percent"]
            cells.append(cell(benchmark, row["accuracy_percent"], 1, printed(other, 1), float(other)))
    claim, sources = "the same for both image backbones", ("spurious_accuracy",)
    return tally("object-accuracy", HIROTA, "Acc_b of objects", claim, cells, sources=sources)


def _recognition() -> Finding:
    """Shares of 200 images, one answer on each, are multiples of half a percent."""
    cells = []
    for row in rows("human_recognition"):
        for feature in Feature:
            text = row[feature]
            nearest = 100 * Fraction(round(Fraction(text) * _ANSWERS / 100), _ANSWERS)
            cells.append(cell(f"{row['benchmark']}, {feature}", text, 1, Range(nearest, nearest)))
    return tally(
        "recognition",
        HIROTA,
        "gender still recognised after a perturbation",
        "shares of 200 images",
        cells,
        sources=("human_recognition",),
        note="99.6 and 99.8 are no shares of 200 single answers; several annotators per image could give them",
    )
