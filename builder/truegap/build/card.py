"""The dataset card of a built benchmark: `README.md` with the `configs:` that `load_dataset` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truegap.schema import CONFIGS, EXTRA_CONFIGS, PLACEBO, SWAP

if TYPE_CHECKING:
    from truegap.build.manifest import Manifest
    from truegap.build.plan import Plan

_BODY = """
# {{ spec.title }}

{{ spec.description }}

Version {{ manifest.version }}, made with truegap {{ manifest.versions["truegap"] }} and seed {{ manifest.seed }}.

```python
from datasets import load_dataset

{% for name in shown -%}
{{ name | replace("-", "_") }} = load_dataset("PATH_OR_REPO", "{{ name }}", split="{{ split }}")
{% endfor -%}
```

## Configs

Every config holds the same images, in the same order, under the same `image_id`. `original` keeps the source's
bytes; the others are stored as {{ manifest.encoder["encoding"] }} ({{ manifest.encoder["codec"] }}). `control` is
decoded and re-encoded only, `control-hsv` goes through 8-bit HSV and back: their effect is the noise floor.
The rest follow Hirota et al. (2025): a hue or value shift (`color`, `lighting`), a share of the objects blacked out
(`object`), everything outside the persons blurred (`background`), each weak, middle and strong.
{%- if "person-removed" in manifest.configs %}
`person-removed` blacks the persons out: a gap that stays is made by the context.{% endif %}
{%- if placebos %}
`object-placebo-*` put the rectangles of `object-*` where nothing is: damage without meaning.{% endif %}
{%- if swaps %}
`background-swap-same` and `-cross` put the persons in front of the background of another picture, of the same
gender and of the other.{% endif %}

| config | images | women | men | objects blacked out | sha256 |
|---|---|---|---|---|---|
{% for name, config in manifest.configs.items() -%}
| `{{ name }}` | {{ config.rows }} | {{ config.woman }} | {{ config.man }} | {% if config.objects is not none
%}{{ config.objects_drawn }} of {{ config.objects }}{% endif %} | `{{ config.sha256[:12] }}` |
{% endfor %}
{%- if manifest.splits | length > 1 or split != "test" %}
## Splits

Every config has the same. Models are evaluated on `test`; a background that is swapped comes from the same split.

| split | images | women | men |
|---|---|---|---|
{% for name, part in manifest.splits.items() -%}
| `{{ name }}` | {{ part.rows }} | {{ part.woman }} | {{ part.man }} |
{% endfor %}
{%- endif %}
## Columns

| column | meaning |
|---|---|
| `image` | the picture |
| `image_id` | the same in all configs |
| `split` | {% for name in manifest.splits %}`{{ name }}`{% if not loop.last %} or {% endif %}{% endfor %} |
| `gender` | perceived presentation, `woman` or `man` |
| `height`, `width` | of the upright image, in pixels |
| `person_boxes` | `[x, y, width, height]` in pixels, one per person |
| `person_masks` | COCO run-length counts, one per person; null where the box stands in |
| `person_origins` | who drew each person: `annotation`, or the model or file with revision and threshold |
| `objects` | everything that could be blacked out: id, label, box, mask, origin |
| `perturbation` | what was drawn: shift, radius, object ids, seed, options; `truegap.redo` does it again |
| `source`, `license`, `attribution` | where the image comes from and under which terms |
{% for name in extra -%}
| `{{ name }}` | specific to this benchmark |
{% endfor %}
## How the images were chosen

| step | women | men | other |
|---|---|---|---|
{% for step in manifest.steps -%}
| {{ step.name }} | {{ step.woman }} | {{ step.man }} | {{ step.other }} |
{% endfor %}
{% if spec.published %}{{ spec.published.distance(manifest.steps[-1].woman, manifest.steps[-1].man) }}.

{% endif -%}
{% if manifest.dropped -%}
Left out, with the reason (the ids are in `manifest.json`):

{% for reason, ids in manifest.dropped.items() -%}
- {{ ids | length }}: {{ reason }}
{% endfor %}
{% endif -%}
{% if manifest.repairs -%}
Mended or left out inside images that stayed:

{% for reason, count in manifest.repairs.items() -%}
- {{ count }}: {{ reason }}
{% endfor %}
{% endif -%}
## Labels

`gender` is how annotators perceived the person shown. It says nothing about anybody's identity, and two labels
do not exhaust it; images labelled otherwise are counted above.

{{ sections }}
{% if spec.citation -%}
## Citation

```bibtex
{{ spec.citation }}
```
{% endif -%}
"""


def card(plan: Plan, manifest: Manifest) -> str:
    """The card of a finished build: front matter for the Hub, then what a reader needs to know."""
    import yaml
    from jinja2 import Environment, StrictUndefined

    from truegap.build.plan import telling
    from truegap.sources.benchmark import load_benchmark, load_card

    spec = load_benchmark(plan.benchmark)
    # Markdown, not HTML: nothing here comes from the archive but reasons that the code itself writes.
    template = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True).from_string(_BODY)  # noqa: S701
    extra = sorted({name for example in telling(plan.selection.examples) for name in example.extra})
    front = yaml.safe_dump(_front_matter(spec, manifest), sort_keys=False, allow_unicode=True)
    placebos, swaps = (any(name.startswith(kind) for name in manifest.configs) for kind in (PLACEBO, SWAP))
    body = template.render(
        spec=spec,
        manifest=manifest,
        extra=extra,
        placebos=placebos,
        swaps=swaps,
        split=next(reversed(manifest.splits)),
        shown=[name for name in ("original", "background-strong") if name in manifest.configs]
        or [*manifest.configs][:1],
        sections=load_card(plan.benchmark),
    )
    return f"---\n{front}---\n{body}"


def _front_matter(spec: Any, manifest: Manifest) -> dict[str, Any]:
    names = [config for config in (*CONFIGS, *EXTRA_CONFIGS) if config in manifest.configs]
    return {
        "pretty_name": spec.title,
        "license": spec.license,
        "language": spec.language,
        "task_categories": spec.task_categories,
        "tags": spec.tags,
        "configs": [
            # `datasets` keys its cache of a local folder by the folder's name and these lines, not by its files: the
            # content has to be among them, or another build under the same name would be read as this one.
            {
                "config_name": name,
                "description": manifest.configs[name].sha256,
                "data_files": [{"split": split, "path": f"data/{name}/{split}-*.parquet"} for split in manifest.splits],
            }
            | ({"default": True} if name == "original" else {})
            for name in names
        ],
    }
