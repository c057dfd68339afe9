"""The dataset card of a recipe: what is published, what is not, and why."""

from __future__ import annotations

from typing import Any

from truegap.build.manifest import Manifest
from truegap.build.recipe import Terms
from truegap.schema import SPLITS
from truegap.sources.benchmark import BenchmarkSpec

_BODY = """
# {{ spec.title }}: recipe

Ids and what was drawn, without images and labels, of a benchmark of {{ terms.images }} images. With a copy of the
source, the same benchmark is made by

```console
truegap build {{ spec.name }} --recipe PATH_OR_REPO --source /your/copy --out {{ spec.name }}
```

or one config of it by `truegap.load("PATH_OR_REPO", "{{ shown }}", source="/your/copy", split="{{ split }}")`. Both say
which images are missing, which are the same to the byte, which are equal up to rounding, and which differ.
{% if spec.origins %}
The source:

{% for origin in spec.origins -%}
- [{{ origin.name }}]({{ origin.url }}){% if origin.note %}: {{ origin.note }}{% endif %}
{% endfor %}
{%- endif %}
## What is published, and why

| part | here | why |
|---|---|---|
{% for row in parts -%}
| {{ row | join(" | ") }} |
{% endfor %}
## Columns

`image_id`; `source`, `license`, `attribution` of the image; `perturbation`, what was drawn; `image_sha256` of the
encoded image; `averages`, red, green and blue of four by four cells in 1/64 of a level, empty for `original`, whose
bytes are the source's.

Made with {% for name, version in terms.versions.items() %}{{ name }} {{ version }}{% if not loop.last %}, {% endif %}
{%- endfor %}, and {{ terms.encoder["codec"] }}.
{% if spec.citation %}
## Citation

```bibtex
{{ spec.citation }}
```
{% endif -%}
"""


def recipe_card(
    spec: BenchmarkSpec, manifest: Manifest, terms: Terms, *, drawer: str, regions: int, hidden: bool
) -> str:
    """The card of a recipe.

    Args:
        spec: Of the benchmark.
        manifest: Of the build that the recipe repeats.
        terms: Of the recipe.
        drawer: Who drew masks inside of boxes.
        regions: How many regions are published.
        hidden: Whether it is kept back whose background was taken.
    """
    import yaml
    from jinja2 import Environment, StrictUndefined

    # Markdown, not HTML: nothing here comes from the archive.
    template = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True).from_string(_BODY)  # noqa: S701
    body = template.render(
        spec=spec,
        terms=terms,
        parts=_parts(spec, terms, drawer=drawer, regions=regions, hidden=hidden),
        shown="background-strong" if "background-strong" in terms.configs else terms.configs[-1],
        split=next(split for split in reversed(SPLITS) if split in manifest.splits),
    )
    front = yaml.safe_dump(_front_matter(spec, manifest), sort_keys=False, allow_unicode=True)
    return f"---\n{front}---\n{body}"


def _parts(spec: BenchmarkSpec, terms: Terms, *, drawer: str, regions: int, hidden: bool) -> list[tuple[str, str, str]]:
    """What there is in a benchmark, whether it is here, and why."""
    parts = [
        (
            "images",
            "no",
            f"they are the source's ({spec.images_license}); licence and attribution stand in each row",
        ),
        ("labels", "no", "they are the source's; one digest over all of them says whether a copy has the same"),
        ("boxes, masks and objects of the annotation", "no", f"they are the source's ({spec.annotations_license})"),
    ]
    if regions:
        parts.append(
            (
                "persons and objects that a detector or a detections file found",
                f"{regions}, in `regions/`",
                "made from the pixels alone, they hold nothing of the annotation; nobody needs the detector again",
            )
        )
    if terms.masks_to_draw:
        parts.append(
            (
                f"masks that {drawer} drew inside of annotated boxes",
                "no",
                f"a mask tells its box; {terms.masks_to_draw} are drawn again from the copy",
            )
        )
    if terms.masks == "all":
        parts.append(
            (
                "masks drawn inside of annotated boxes",
                "yes",
                "a mask tells its box: whoever made this recipe holds that the source's terms allow it",
            )
        )
    draws = "yes, but for the rectangles of placebos" + (" and whose background was taken" if hidden else "")
    why = (
        "shifts, radii and ids of objects are ours; the rest would tell annotation or labels, and follows from the key"
    )
    marks = ("SHA-256 of each image, average colours of its sixteen cells", "yes", "to know it again, not to make it")
    return [*parts, ("what was drawn for each image", draws, why), marks]


def _front_matter(spec: BenchmarkSpec, manifest: Manifest) -> dict[str, Any]:
    return {
        "pretty_name": f"{spec.title} (recipe)",
        # Of what is here: ids, draws and digests, all ours.
        "license": "apache-2.0",
        "tags": ["truegap-recipe"],
        "configs": [
            {
                "config_name": config,
                "description": summary.sha256,
                "data_files": [
                    {"split": split, "path": f"data/{config}/{split}-*.parquet"} for split in manifest.splits
                ],
            }
            for config, summary in manifest.configs.items()
        ],
    }
