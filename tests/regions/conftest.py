"""Tiny detectors and segmenters of real classes with random weights, saved as transformers saves any."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from few_threads import few_threads  # noqa: F401  # a fixture of every test here
from tiny import bert_tokenizer, clip_tokenizer

LABELS = {0: "person", 1: "cup", 2: "dog"}
SQUARE = {"height": 64, "width": 64}
NAMES = {"id2label": LABELS, "label2id": {name: number for number, name in LABELS.items()}}
SMALL = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
REAL_TIME = {
    "encoder_hidden_dim": 32,
    "feat_strides": [8, 16, 32],
    "encoder_ffn_dim": 32,
    "encoder_attention_heads": 4,
    "d_model": 32,
    "decoder_in_channels": [32, 32, 32],
    "decoder_ffn_dim": 32,
    "decoder_layers": 2,
    "decoder_attention_heads": 4,
    "num_queries": 6,
    "num_denoising": 0,
    "anchor_image_size": None,
}
HEADS = {"encoder_attention_heads": 8, "decoder_attention_heads": 8}
QUIET = ("class_embed.0.bias", "output_class_embed.bias", "mask_head.output_conv.bias")
WORDS = ["a", "photo", "of", "person", "cup", "dog", "cat", "ball", "sports", "wine", "glass", ".", ",", "detect"]


def resnet(stages: int = 4):
    from transformers import ResNetConfig

    names = [f"stage{number}" for number in range(1, stages + 1)][-3:] if stages > 1 else ["stage1"]
    return ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 8, 16, 16][:stages],
        depths=[1] * stages,
        layer_type="basic",
        out_features=names,
    )


def _detr_config(config, **more):
    backbone = resnet()
    backbone.out_features = ["stage4"]
    return config(use_timm_backbone=False, backbone_config=backbone, num_queries=6, **SMALL, **HEADS, **NAMES, **more)


def detr():
    import transformers as t

    return t.DetrForObjectDetection(_detr_config(t.DetrConfig)), t.DetrImageProcessor(size=SQUARE)


def conditional_detr():
    import transformers as t

    config = _detr_config(t.ConditionalDetrConfig)
    return t.ConditionalDetrForObjectDetection(config), t.ConditionalDetrImageProcessor(size=SQUARE)


def deformable_detr():
    import transformers as t

    config = t.DeformableDetrConfig(
        use_timm_backbone=False,
        backbone_config=resnet(),
        num_queries=6,
        num_feature_levels=3,
        **SMALL,
        **HEADS,
        **NAMES,
    )
    return t.DeformableDetrForObjectDetection(config), t.DeformableDetrImageProcessor(size=SQUARE)


def yolos():
    import transformers as t

    config = t.YolosConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=32,
        image_size=[64, 64],
        num_detection_tokens=6,
        use_mid_position_embeddings=False,
        **NAMES,
    )
    return t.YolosForObjectDetection(config), t.YolosImageProcessor(size=SQUARE)


def _rt(config_class, model_class):
    import transformers as t

    config = config_class(
        backbone_config=t.RTDetrResNetConfig(
            embedding_size=8,
            hidden_sizes=[8, 8, 16, 16],
            depths=[1, 1, 1, 1],
            layer_type="basic",
            out_features=["stage2", "stage3", "stage4"],
        ),
        encoder_in_channels=[8, 16, 16],
        **REAL_TIME,
        **NAMES,
    )
    return model_class(config), t.RTDetrImageProcessor(size=SQUARE)


def rt_detr():
    import transformers as t

    return _rt(t.RTDetrConfig, t.RTDetrForObjectDetection)


def rt_detr_v2():
    import transformers as t

    return _rt(t.RTDetrV2Config, t.RTDetrV2ForObjectDetection)


def d_fine():
    import transformers as t

    config = t.DFineConfig(
        backbone_config=t.HGNetV2Config(
            embedding_size=16,
            hidden_sizes=[16, 16, 16, 16],
            stem_channels=[3, 8, 8],
            stage_in_channels=[8, 16, 16, 16],
            stage_mid_channels=[8, 8, 8, 8],
            stage_out_channels=[16, 16, 16, 16],
            stage_num_blocks=[1, 1, 1, 1],
            stage_numb_of_layers=[1, 1, 1, 1],
            depths=[1, 1, 1, 1],
            out_features=["stage2", "stage3", "stage4"],
        ),
        encoder_in_channels=[16, 16, 16],
        hidden_dim=32,
        decoder_n_points=[2, 2, 2],
        **REAL_TIME,
        **NAMES,
    )
    return t.DFineForObjectDetection(config), t.RTDetrImageProcessor(size=SQUARE)


def detr_segmentation():
    import transformers as t

    config = _detr_config(t.DetrConfig)
    config.num_queries = 1  # the library drops masks that share most of their pixels
    config.backbone_config.out_features = ["stage1", "stage2", "stage3", "stage4"]
    model = t.DetrForSegmentation(config)
    model.detr.class_labels_classifier.bias.data[1] = 3.0
    return model, t.DetrImageProcessor(size=SQUARE)


def mask2former():
    import transformers as t

    config = t.Mask2FormerConfig(
        backbone_config=_swin(),
        feature_size=32,
        mask_feature_size=32,
        hidden_dim=32,
        encoder_feedforward_dim=32,
        encoder_layers=1,
        decoder_layers=2,
        num_attention_heads=4,
        dim_feedforward=32,
        num_queries=6,
        **NAMES,
    )
    return t.Mask2FormerForUniversalSegmentation(config), t.Mask2FormerImageProcessor(size=SQUARE)


def maskformer():
    import transformers as t

    config = t.MaskFormerConfig(
        backbone_config=_swin(),
        fpn_feature_size=32,
        mask_feature_size=32,
        decoder_config=t.DetrConfig(num_queries=6, **SMALL, **HEADS),
        **NAMES,
    )
    return t.MaskFormerForInstanceSegmentation(config), t.MaskFormerImageProcessor(size=SQUARE)


def _swin():
    import transformers as t

    return t.SwinConfig(
        image_size=64,
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 2, 2, 2],
        window_size=4,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )


def eomt():
    import transformers as t

    config = t.EomtConfig(
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        image_size=64,
        patch_size=16,
        num_blocks=1,
        num_queries=6,
        num_register_tokens=0,
        **NAMES,
    )
    processor = t.EomtImageProcessor(size={"shortest_edge": 64, "longest_edge": 64}, do_pad=True)
    return t.EomtForUniversalSegmentation(config), processor


def rf_detr():
    return _rf("RfDetrForObjectDetection")


def rf_detr_segmentation():
    return _rf("RfDetrForInstanceSegmentation")


def _rf(name):
    import transformers as t
    from transformers.models.rf_detr.configuration_rf_detr import RfDetrDinov2Config

    backbone = RfDetrDinov2Config(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=64,
        patch_size=16,
        num_windows=1,
        out_features=["stage2"],
    )
    config = t.RfDetrConfig(
        backbone_config=backbone,
        hidden_expansion=0.5,
        d_model=32,
        decoder_layers=1,
        decoder_ffn_dim=32,
        decoder_self_attention_heads=4,
        decoder_cross_attention_heads=4,
        num_queries=6,
        group_detr=1,
        **NAMES,
    )
    return getattr(t, name)(config), t.RfDetrImageProcessor(size=SQUARE)


def owlv2():
    import transformers as t

    tokenizer = clip_tokenizer(48)
    small = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
    ids = {"bos_token_id": 512, "eos_token_id": 513, "pad_token_id": 513}
    config = t.Owlv2Config(
        text_config={**small, "vocab_size": len(tokenizer), "max_position_embeddings": 48, **ids},
        vision_config={**small, "image_size": 64, "patch_size": 16},
        projection_dim=32,
    )
    return t.Owlv2ForObjectDetection(config), t.Owlv2Processor(t.Owlv2ImageProcessor(size=SQUARE), tokenizer)


def _text(size):
    return {
        "model_type": "bert",
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "intermediate_size": 32,
        "vocab_size": size,
        "max_position_embeddings": 512,
    }


def _dino(config_class, model_class):
    import transformers as t

    tokenizer = bert_tokenizer(WORDS)
    config = config_class(
        backbone_config=t.SwinConfig(
            image_size=64,
            embed_dim=8,
            depths=[1, 1, 1, 1],
            num_heads=[1, 2, 2, 2],
            window_size=4,
            out_features=["stage2", "stage3", "stage4"],
        ),
        text_config=_text(len(tokenizer)),
        num_queries=6,
        num_feature_levels=3,
        max_text_len=16,
        fusion_layers=1,
        **SMALL,
        **HEADS,
    )
    return model_class(config), t.GroundingDinoProcessor(t.GroundingDinoImageProcessor(size=SQUARE), tokenizer)


def grounding_dino():
    import transformers as t

    return _dino(t.GroundingDinoConfig, t.GroundingDinoForObjectDetection)


def mm_grounding_dino():
    import transformers as t

    return _dino(t.MMGroundingDinoConfig, t.MMGroundingDinoForObjectDetection)


def omdet():
    import transformers as t

    tokenizer = clip_tokenizer(77)
    ids = {"bos_token_id": 512, "eos_token_id": 513, "pad_token_id": 513}
    config = t.OmDetTurboConfig(
        backbone_config=t.SwinConfig(
            image_size=64,
            embed_dim=8,
            depths=[1, 1, 1, 1],
            num_heads=[1, 2, 2, 2],
            window_size=4,
            out_features=["stage2", "stage3", "stage4"],
        ),
        use_timm_backbone=False,
        text_config={
            "model_type": "clip_text_model",
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "projection_dim": 32,
            "vocab_size": len(tokenizer),
            "max_position_embeddings": 77,
            **ids,
        },
        text_projection_in_dim=32,
        text_projection_out_dim=32,
        class_embed_dim=32,
        encoder_hidden_dim=16,
        encoder_in_channels=[16, 32, 64],
        encoder_dim_feedforward=32,
        encoder_attention_heads=4,
        decoder_hidden_dim=16,
        decoder_num_heads=4,
        decoder_num_layers=1,
        decoder_dim_feedforward=32,
        task_encoder_hidden_dim=32,
        vision_features_channels=[16, 16, 16],
        num_queries=6,
        num_projection_layers=1,
        image_size=64,
        apply_layernorm_after_vision_backbone=False,
    )
    model = t.OmDetTurboForObjectDetection(config)
    return model, t.OmDetTurboProcessor(t.DetrImageProcessor(size=SQUARE, do_pad=False), tokenizer)


def sam():
    return _sam(
        "SamConfig", "SamModel", "SamProcessor", "SamVisionConfig", "SamPromptEncoderConfig", "SamMaskDecoderConfig"
    )


def sam_hq():
    return _sam(
        "SamHQConfig",
        "SamHQModel",
        "SamHQProcessor",
        "SamHQVisionConfig",
        "SamHQPromptEncoderConfig",
        "SamHQMaskDecoderConfig",
    )


def _sam(config, model, processor, vision, prompts, decoder):
    import transformers as t

    more = {"vit_dim": 32} if "HQ" in model else {}
    made = getattr(t, config)(
        vision_config=getattr(t, vision)(
            hidden_size=32,
            output_channels=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            image_size=64,
            patch_size=16,
            window_size=2,
            global_attn_indexes=[1],
            mlp_dim=32,
            num_pos_feats=16,
        ),
        prompt_encoder_config=getattr(t, prompts)(hidden_size=32, image_size=64, patch_size=16, mask_input_channels=4),
        mask_decoder_config=getattr(t, decoder)(
            hidden_size=32, mlp_dim=32, num_hidden_layers=1, num_attention_heads=4, iou_head_hidden_dim=32, **more
        ),
    )
    images = t.SamImageProcessor(size={"longest_edge": 64}, pad_size=SQUARE)
    return getattr(t, model)(made), getattr(t, processor)(images)


def sam2():
    import transformers as t

    backbone = t.Sam2HieraDetConfig(
        hidden_size=8,
        num_attention_heads=1,
        image_size=[64, 64],
        blocks_per_stage=[1, 1, 2, 1],
        embed_dim_per_stage=[8, 16, 32, 64],
        num_attention_heads_per_stage=[1, 1, 1, 1],
        window_size_per_stage=[4, 4, 4, 2],
        window_positional_embedding_background_size=[4, 4],
        global_attention_blocks=[3],
    )
    config = t.Sam2Config(
        vision_config=t.Sam2VisionConfig(
            backbone_config=backbone,
            backbone_channel_list=[64, 32, 16, 8],
            backbone_feature_sizes=[[16, 16], [8, 8], [4, 4]],
            fpn_hidden_size=32,
        ),
        prompt_encoder_config=t.Sam2PromptEncoderConfig(
            hidden_size=32, image_size=64, patch_size=16, mask_input_channels=4
        ),
        mask_decoder_config=t.Sam2MaskDecoderConfig(
            hidden_size=32, mlp_dim=32, num_hidden_layers=1, num_attention_heads=4, iou_head_hidden_dim=32
        ),
    )
    return t.Sam2Model(config), t.Sam2Processor(
        t.Sam2ImageProcessor(size=SQUARE, mask_size={"height": 16, "width": 16})
    )


BOXES = [detr, conditional_detr, deformable_detr, yolos, rt_detr, rt_detr_v2, d_fine, rf_detr]
INSTANCES = [detr_segmentation, mask2former, maskformer, eomt, rf_detr_segmentation]
GROUNDED = [owlv2, grounding_dino, mm_grounding_dino, omdet]
MASKS = [sam, sam_hq, sam2]
FAMILIES = {build.__name__: build for build in (*BOXES, *INSTANCES, *GROUNDED, *MASKS)}


@pytest.fixture(scope="session")
def saved(tmp_path_factory) -> Callable[[str], Path]:
    """A folder with a model of this family and its processor, as `save_pretrained` writes them."""
    made: dict[str, Path] = {}

    def folder(family: str) -> Path:
        if family not in made:
            import torch

            torch.manual_seed(7)
            model, processor = FAMILIES[family]()
            with torch.no_grad():
                # Untrained heads say that there is nothing.
                for name, parameter in model.named_parameters():
                    if name.endswith(QUIET):
                        parameter.fill_(1.0)
            made[family] = tmp_path_factory.mktemp("models") / f"tiny-{family}"
            model.eval().save_pretrained(made[family])
            processor.save_pretrained(made[family])
        return made[family]

    return folder


@pytest.fixture(scope="session")
def pixels() -> np.ndarray:
    """A picture that is neither square nor of a model's size."""
    rng = np.random.default_rng(5)
    return np.kron(rng.integers(0, 256, (9, 15, 3)), np.ones((10, 10, 1))).astype(np.uint8)
