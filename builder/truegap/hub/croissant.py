"""`croissant.json`: what a dataset is, for machines, with the fields of the responsible AI extension.

Croissant 1.0 (http://mlcommons.org/croissant/1.0) and its RAI vocabulary (http://mlcommons.org/croissant/RAI/1.0), as
JSON-LD written by hand: the format needs no library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from truegap.sources.benchmark import BenchmarkSpec

FILE = "croissant.json"
VERSIONS = ("http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0")

_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context that the specification recommends, and the prefix of the extension."""

_PARAGRAPHS = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class Facts:
    """What of a version is not in the benchmark's pinned metadata.

    Attributes:
        url: Of the dataset's page.
        namespace: Who publishes it.
        version: Without the `v`.
        date: Of publication, ISO 8601.
        recipe: Whether it is one.
        schema: Of its tables, from pyarrow.
        configs: Their names.
        splits: Their names.
        label: How the images were labelled, in words.
        steps: How the images were chosen, a line per step.
        sections: Markdown that is special to the benchmark.
    """

    url: str
    namespace: str
    version: str
    date: str
    recipe: bool
    schema: Any
    configs: Sequence[str]
    splits: Sequence[str]
    label: str
    steps: Sequence[str]
    sections: str


def croissant(spec: BenchmarkSpec, facts: Facts) -> bytes:
    """The description of a version of a dataset.

    Args:
        spec: Of the benchmark.
        facts: Of the version.
    """
    content = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": list(VERSIONS),
        "name": f"{spec.name}-recipe" if facts.recipe else spec.name,
        "description": spec.description,
        "url": facts.url,
        "license": "https://spdx.org/licenses/Apache-2.0" if facts.recipe else _licenses(spec),
        "creator": {"@type": "Organization", "name": facts.namespace},
        "publisher": {"@type": "Organization", "name": facts.namespace},
        "datePublished": facts.date,
        "version": facts.version,
        "keywords": spec.tags,
        "inLanguage": spec.language,
        "isLiveDataset": False,
        **({"citeAs": spec.citation} if spec.citation else {}),
        **({"isBasedOn": [each.url for each in spec.origins]} if spec.origins else {}),
        **_responsible(spec, facts),
        "distribution": _files(facts),
        "recordSet": [_records(config, facts) for config in facts.configs],
    }
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def _licenses(spec: BenchmarkSpec) -> list[str] | str:
    named = [terms.url or name for name, terms in spec.licenses.items()]
    return named[0] if len(named) == 1 else named or spec.license


def _responsible(spec: BenchmarkSpec, facts: Facts) -> dict[str, Any]:
    """Where the data come from, what they must not be taken for, and who is shown."""
    drawn = not spec.origins
    people = (
        "Nobody: the pictures are drawn by a program"
        if drawn
        else "Gender: people are shown, with a perceived presentation (woman, man) that others assigned to them"
    )
    kept = " No image and no label is published: whoever has the source makes them from it." if facts.recipe else ""
    return {
        "rai:dataCollection": _first_paragraph(facts.sections) or spec.description,
        "rai:dataCollectionType": ["Software Collection"] if drawn else ["Secondary Data analysis"],
        "rai:dataCollectionRawData": "; ".join(f"{each.name} ({each.url})" for each in spec.origins) or "none",
        "rai:dataCollectionMissingData": "Every image that was left out is in the manifest of the build, with its "
        f"reason.{kept}",
        "rai:dataPreprocessingProtocol": list(facts.steps),
        "rai:dataManipulationProtocol": "Per config, one feature that has nothing to do with gender is changed: hue or "
        "value shifted, objects blacked out, everything outside the persons blurred. What was drawn is in every row.",
        "rai:dataAnnotationProtocol": facts.label,
        "rai:personalSensitiveInformation": [people],
        "rai:dataBiases": [
            "What else is in a picture goes with the label; the perturbed configs measure how far that moves a score.",
            "Two labels do not describe people: whoever presents otherwise was labelled as one of them or left out.",
        ],
        "rai:dataLimitations": [
            "A score without its sensitivity to the perturbations cannot be read.",
            "Perceived presentation says nothing about anybody's identity.",
            *(_list_items(facts.sections)),
        ],
        "rai:dataSocialImpact": "Made to find bias in models. It must not be used to train or sell a classifier of "
        "gender, nor to say who somebody is.",
        "rai:dataUseCases": ["Testing: the gender bias of vision-language models, and what of it the context makes"],
        "rai:dataReleaseMaintenancePlan": ["Each version is a tag that never moves; a correction is a new version."],
    }


def _first_paragraph(sections: str) -> str:
    paragraphs = [part for part in _PARAGRAPHS.split(sections) if part.strip() and not part.startswith("#")]
    return " ".join(paragraphs[0].split()) if paragraphs else ""


def _list_items(sections: str) -> list[str]:
    """The points of the section that says what the benchmark is not."""
    _, _, last = sections.partition("## What it is not")
    return [" ".join(item.split()) for item in re.split(r"^- ", last, flags=re.MULTILINE)[1:]]


def _files(facts: Facts) -> list[dict[str, Any]]:
    repository: dict[str, Any] = {
        "@type": "cr:FileObject",
        "@id": "repository",
        "name": "repository",
        "description": "The dataset's repository on the Hub.",
        "contentUrl": f"{facts.url}/tree/v{facts.version}",
        "encodingFormat": "git+https",
        # What mlcroissant expects for a repository, which has no checksum of its own.
        "sha256": "https://github.com/mlcommons/croissant/issues/80",
    }
    sets = [
        {
            "@type": "cr:FileSet",
            "@id": f"files-{config}",
            "name": f"files-{config}",
            "description": f"The parquet files of config {config}.",
            "containedIn": {"@id": "repository"},
            "encodingFormat": "application/x-parquet",
            "includes": f"data/{config}/*.parquet",
        }
        for config in facts.configs
    ]
    return [repository, *sets]


def _records(config: str, facts: Facts) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": config,
        "name": config,
        "description": f"Config {config}; splits: {', '.join(facts.splits)}.",
        "key": {"@id": f"{config}/image_id"},
        "field": [_field(config, field) for field in facts.schema],
    }


def _field(config: str, column: Any) -> dict[str, Any]:
    identity = f"{config}/{column.name}"
    source = {"fileSet": {"@id": f"files-{config}"}, "extract": {"column": column.name}}
    if column.name == "image":
        source["transform"] = {"jsonPath": "bytes"}
        return {"@type": "cr:Field", "@id": identity, "name": identity, "dataType": "sc:ImageObject", "source": source}
    return _typed(identity, column.type, source)


def _typed(identity: str, kind: Any, source: dict[str, Any]) -> dict[str, Any]:
    """A field of an Arrow type; lists are repeated, structs have fields below them."""
    from pyarrow import types

    field: dict[str, Any] = {"@type": "cr:Field", "@id": identity, "name": identity}
    while types.is_list(kind) or types.is_fixed_size_list(kind) or types.is_large_list(kind):
        field["repeated"], kind = True, kind.value_type
    if not types.is_struct(kind):
        return {**field, "dataType": _data_type(kind), "source": source}
    inner = [
        _typed(f"{identity}/{each.name}", each.type, {**source, "transform": {"jsonPath": each.name}}) for each in kind
    ]
    return {**field, "subField": inner}


def _data_type(kind: Any) -> str:
    from pyarrow import types

    if types.is_boolean(kind):
        return "sc:Boolean"
    if types.is_integer(kind):
        return "sc:Integer"
    if types.is_floating(kind):
        return "sc:Float"
    return "sc:Text"
