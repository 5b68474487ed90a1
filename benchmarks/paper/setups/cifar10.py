"""The paper's CIFAR-10 setup (Sec. 4.1 and appendix "Access of benchmarks and models").

Its ten classifiers are those of github.com/kuangliu/pytorch-cifar, trained by whoever runs this:
the paper released no weights. Put a module `cifar10_classifiers` on PYTHONPATH with a function
for each of them, named in lower case, that returns the trained network, or the network and its
`rightly.classifiers.Preprocessing`.
"""

from benchmarks.paper.setups.setup import Images, Setup, name_factories

CLASSIFIERS = name_factories(
    "cifar10_classifiers",
    (
        "VGG19",
        "DenseNet121",
        "DenseNet201",
        "ResNet18",
        "ResNet50",
        "ShuffleNetV2",
        "MobileNet",
        "PreActResNet101",
        "RegNetX_200MF",
        "ResNeXt29_2x64d",
    ),
)

CIFAR10 = Setup(
    name="cifar10",
    about="ten classifiers of pytorch-cifar, calibrated on the test set of CIFAR-10",
    classifiers=CLASSIFIERS,
    calibration=Images("test", "cifar10", "cifar10", "test"),
    tests=(
        # The paper does not say which version; its released code reads v4.
        Images("cifar10.1", "cifar10.1", "cifar10.1", "v4", published="CIFAR-10.1"),
        # Nor which severity: an uncalibrated ECE of 45.7 only fits the highest.
        Images(
            "gaussian_blur", "cifar10-c", "cifar10-c", "gaussian_blur", 5, published="Gaussian Blur"
        ),
        Images(
            "defocus_blur", "cifar10-c", "cifar10-c", "defocus_blur", 5, published="Defocus Blur"
        ),
        Images("cinic10", "cinic10", "cinic10", "test", published="CINIC"),
    ),
    published="cifar10",
    features=True,
)
