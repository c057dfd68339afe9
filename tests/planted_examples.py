"""Examples of benchmarks with columns of their own, whose pictures say by their brightness who is shown."""

from __future__ import annotations

from answerer import plain_picture
from examples import example

DARK, LIGHT = 80, 160
PAIRS = (("Pilot", "Nurse"), ("Bartender", "Waiter"))
OTHER = {"woman": "man", "man": "woman"}


def viso(number, gender, level, other, occupation="doctor"):
    """A picture of VisoGender: one person, or two where `other` is the second one's gender."""
    extra = {
        "kind": "OO" if other is None else "OP",
        "sector": "medical",
        "specialisation": "hospital_worker",
        "occupation": occupation,
        "occupation_gender": gender,
        "object": "mixing_spoon" if other is None else None,
        "participant": None if other is None else "patient",
        "participant_gender": other,
    }
    return example(number, gender, image_id=f"{number:02}", image=plain_picture(level + number), extra=extra)


def _asked(number, context, role, occupation, similar, base_gender, pair):
    shown = base_gender if role == "base" else OTHER[base_gender]
    word = "person" if context == "V" else {"woman": "female", "man": "male"}[shown]
    names = ["Waitress" if name == "Waiter" and shown == "woman" else name for name in (occupation, similar)]
    for order in (0, 1):
        options = names[::-1] if order else names
        shown_options = f"(A) {options[0]} (B) {options[1]}"
        yield {
            "id": number,
            "context": context,
            "role": role,
            "order": order,
            "question": f"What is the {word}'s occupation in this image? \nOptions: {shown_options}\n",
            "options": options,
            "answer": order,
            "occupation": occupation,
            "pair": pair,
            "base_gender": base_gender,
        }


def examples():
    """Both pairs of occupations with all contexts, roles and orders."""
    found, number = [], 0
    for male, female in PAIRS:
        for occupation, similar in ((male, female), (female, male)):
            for base in ("man", "woman") * 2:
                number += 1
                known = (number, occupation, similar, base, f"{male}|{female}")
                found += [_example(kind, *known) for kind in ("base", "counterfactual", "bleached")]
    return found


def _example(kind, number, occupation, similar, base, pair):
    shown = OTHER[base] if kind == "counterfactual" else base
    roles = ("base", "counterfactual") if kind == "bleached" else (kind,)
    contexts = ("L",) if kind == "bleached" else ("VL", "V")
    questions = [
        each
        for context in contexts
        for role in roles
        for each in _asked(number, context, role, occupation, similar, base, pair)
    ]
    level = 120 if kind == "bleached" else (LIGHT if shown == "man" else DARK)
    extra = {"image_kind": kind, "pictured": occupation, "image_pair": f"{number}", "questions": questions}
    return example(number, shown, image_id=f"{kind}/{number:02}", image=plain_picture(level + number), extra=extra)
