"""A classifier in training mode gives an image other logits each time, or in other company."""

import torch
from torch import Tensor

from rightly.classifiers.classifier import Classifier
from rightly.predictions.masking import MASKED
from rightly.transforms.image_tensors import Images

# Share of the range of an image's logits by which they may differ. Chosen well above the rounding
# of TF32 (2**-11) and bfloat16 (2**-9) in single operations; not measured on large models.
TOLERANCES = {"float32": 0.02, "float16": 0.05, "bfloat16": 0.05}


def check_repeatable(classifier: Classifier, images: Images, precision: str) -> None:
    """Refuses a classifier whose logits of an image change by chance or by the images beside it.

    The batch is run once as it is, and once with copies of its first image in every place. Copies
    that differ were changed by chance; copies that agree, but not with the image among others, by
    those others. The size of the batch stays, since some functions take no other.
    """
    among_others = classifier.forward(images)[0][:1]
    copies = classifier.forward(images[:1].expand_as(images).contiguous())[0]
    used = among_others > MASKED
    span = torch.where(used, among_others, among_others.amax()).aminmax()
    allowed = TOLERANCES[precision] * (span.max - span.min)
    if _differ(copies, copies[:1], allowed):
        reason = "copies of one image in one batch get different ones, as dropout makes them"
    elif _differ(copies, among_others, allowed):
        reason = (
            "those of an image change with the images beside it, as batch normalisation makes them"
        )
    else:
        return
    raise ValueError(
        f"model must give an image the same logits each time, but {reason} in training mode: call "
        "model.eval() before (also in a function, on the model that it runs) and give "
        "functional.dropout training=self.training; or insist with allow_random=True"
    )


def _differ(logits: Tensor, others: Tensor, allowed: Tensor) -> bool:
    """Whether any logit is farther apart than allowed; what is masked must be so in both."""
    apart = (logits.clamp_min(MASKED) - others.clamp_min(MASKED)).abs()
    return bool((apart > allowed).any())  # NaN is reported with its image, when rows are made
