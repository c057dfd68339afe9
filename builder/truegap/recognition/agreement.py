"""From answers to agreement: pure counting, and Wilson's interval over images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from truegap.recognition.answers import Answer, Answers
from truegap.recognition.records import AgreementRecord, AnnotatorRecord, RecognitionRecord, Study
from truegap.schema import GENDERS

CONFIDENCE = 0.95
FOREIGN = "picture is not in the sample"
_CANNOT_TELL = "cannot tell"


def agreement(study: Study, answers: Answers) -> RecognitionRecord:
    """How often people's last answers equal the label.

    Several answers on one image, by several people or in several configs, are taken as one image's worth in the
    interval (Kish's effective number), which is on the safe side: it is exact where they always agree.

    Args:
        study: The pictures and their labels.
        answers: Everything that was answered; the last answer of an annotator to a picture counts.
    """
    skipped = Counter(answers.skipped)
    last: dict[tuple[str, str, str], Answer] = {}
    times: Counter[tuple[str, str, str]] = Counter()
    for each in answers.all:
        if each.item.config not in study.configs or each.item.image_id not in study.images:
            skipped[FOREIGN] += 1
            continue
        key = (each.annotator.casefold(), *each.item)
        last[key] = each
        times[key] += 1
    counted = list(last.values())
    parts: list[tuple[str | None, str | None]] = [(None, None), *((None, gender) for gender in GENDERS)]
    parts += [(config, gender) for config in study.configs for gender in (None, *GENDERS)]
    labels = list(study.images.values())
    return RecognitionRecord(
        benchmark=study.benchmark,
        version=study.version,
        content=study.content,
        seed=study.seed,
        configs=study.configs,
        women=labels.count("woman"),
        men=labels.count("man"),
        confidence=CONFIDENCE,
        agreements=[_part(study, counted, config, gender) for config, gender in parts],
        annotators=_annotators(study, last, times),
        skipped=dict(skipped),
    )


def _part(study: Study, answers: Sequence[Answer], config: str | None, gender: str | None) -> AgreementRecord:
    from truegap.spurious.statistics import effective_images, wilson

    of = [
        each
        for each in answers
        if config in (None, each.item.config) and gender in (None, study.images[each.item.image_id])
    ]
    agree = sum(each.choice == study.images[each.item.image_id] for each in of)
    unsure = sum(each.choice == _CANNOT_TELL for each in of)
    numbers = {image_id: number for number, image_id in enumerate(study.images)}
    worth = effective_images([[numbers[each.item.image_id] for each in of]]) if of else None
    low, high = wilson(agree / len(of), worth, CONFIDENCE) if worth else (None, None)
    return AgreementRecord(
        config=config,
        gender=gender,  # type: ignore[arg-type]
        answers=len(of),
        agree=agree,
        opposite=len(of) - agree - unsure,
        cannot_tell=unsure,
        images=len({each.item.image_id for each in of}),
        effective_images=worth,
        agreement=agree / len(of) if of else None,
        ci_low=low,
        ci_high=high,
    )


def _annotators(
    study: Study, last: dict[tuple[str, str, str], Answer], times: Counter[tuple[str, str, str]]
) -> list[AnnotatorRecord]:
    records = []
    for name in sorted({who for who, _, _ in last}):
        own = {key: answer for key, answer in last.items() if key[0] == name}
        records.append(
            AnnotatorRecord(
                name=next(iter(own.values())).annotator,
                answers=len(own),
                of=study.n_items,
                agree=sum(each.choice == study.images[each.item.image_id] for each in own.values()),
                cannot_tell=sum(each.choice == _CANNOT_TELL for each in own.values()),
                revised=sum(times[key] > 1 for key in own),
            )
        )
    return records
