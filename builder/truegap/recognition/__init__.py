"""The human check: is gender still recognised after a strong perturbation? Knows nothing of Gradio.

People look at perturbed pictures of a built benchmark and say whom they see; the share of answers that equal the label
is the agreement (Hirota et al. 2025: 99.5 to 100 % over four benchmarks and four features, 200 images each).
"""

from truegap.recognition.agreement import agreement
from truegap.recognition.answers import CHOICES, Answer, AnswerFolder, Answers, annotator_name
from truegap.recognition.pictures import Pictures
from truegap.recognition.records import AgreementRecord, AnnotatorRecord, RecognitionRecord, Study
from truegap.recognition.study import STRONG, Item, draw, items, open_study, read_study

__all__ = [
    "CHOICES",
    "STRONG",
    "AgreementRecord",
    "AnnotatorRecord",
    "Answer",
    "AnswerFolder",
    "Answers",
    "Item",
    "Pictures",
    "RecognitionRecord",
    "Study",
    "agreement",
    "annotator_name",
    "draw",
    "items",
    "open_study",
    "read_study",
]
