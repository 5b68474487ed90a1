"""The paper's ImageNet setup (Sec. 4.1 and appendix "Access of benchmarks and models")."""

from benchmarks.paper.setups.setup import Classifier, Images, Setup

# The paper's names, with the names that the same weights have in timm since its version 0.9.
CLASSIFIERS = (
    Classifier("beit_base_patch16_384", "timm:beit_base_patch16_384.in22k_ft_in22k_in1k"),
    Classifier("tv_resnet152", "timm:resnet152.tv_in1k"),
    Classifier("tv_resnet50", "timm:resnet50.tv_in1k"),
    Classifier("tv_resnet101", "timm:resnet101.tv_in1k"),
    Classifier("densenet121", "timm:densenet121.ra_in1k"),
    Classifier("inception_v4", "timm:inception_v4.tf_in1k"),
    Classifier("densenet201", "timm:densenet201.tv_in1k"),
    Classifier("vit_base_patch16_384", "timm:vit_base_patch16_384.augreg_in21k_ft_in1k"),
    Classifier("deit_base_patch16_224", "timm:deit_base_patch16_224.fb_in1k"),
    Classifier("inception_v3", "timm:inception_v3.tv_in1k"),
)

IMAGENET = Setup(
    name="imagenet",
    about="ten classifiers of timm, calibrated on ImageNet-Val",
    classifiers=CLASSIFIERS,
    calibration=Images("val", "imagenet-val", "imagenet-val"),
    tests=(
        # Half of ImageNet-Val against the other half; the released code cuts it by class number,
        # which is another task: here the halves are random within each class.
        Images(
            "val",
            "imagenet-val",
            "imagenet-val",
            half=True,
            in_distribution=True,
            published="ImageNet-Val",
        ),
        # Logits of A, R and ObjectNet are restricted to the classes that these sets have, and
        # calibrators for them are fitted on ImageNet-Val restricted alike.
        Images("a", "imagenet-a", "imagenet-a", published="ImageNet-A"),
        Images("r", "imagenet-r", "imagenet-r", published="ImageNet-R"),
        Images("sketch", "imagenet-sketch", "imagenet-sketch", published="ImageNet-S"),
        Images("objectnet", "objectnet", "objectnet", published="ObjectNet"),
    ),
    published="imagenet",
    features=True,
)
