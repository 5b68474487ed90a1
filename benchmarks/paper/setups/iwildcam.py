"""The paper's iWildCam setup (Sec. 4.1 and appendix "Access of benchmarks and models").

Its ten classifiers are the weights that WILDS publishes on CodaLab. Put a module
`iwildcam_classifiers` on PYTHONPATH with a function for each of them, named in lower case, that
returns the ResNet-50 with these weights and its `rightly.classifiers.Preprocessing`.
"""

from benchmarks.paper.setups.setup import Images, Setup, name_factories

CLASSIFIERS = name_factories(
    "iwildcam_classifiers",
    (
        "iwildcam_erm_seed1",
        "iwildcam_deepCORAL_seed0",
        "iwildcam_groupDRO_seed0",
        "iwildcam_irm_seed0",
        "iwildcam_erm_tune0",
        "iwildcam_ermaugment_tune0",
        "iwildcam_ermoracle_extraunlabeled_tune0",
        "iwildcam_swav30_ermaugment_seed0",
        "iwildcam_dann_coarse_extraunlabeled_tune0",
        "iwildcam_afn_extraunlabeled_tune0",
    ),
)

IWILDCAM = Setup(
    name="iwildcam",
    about="ten classifiers of WILDS, calibrated on the validation set of iWildCam",
    classifiers=CLASSIFIERS,
    # "The iWildCam validation set": the released code reads the one of the same cameras.
    calibration=Images("id_val", "iwildcam", "iwildcam", "id_val"),
    tests=(Images("test", "iwildcam", "iwildcam", "test", published="iWildCam"),),
    published="iwildcam",
    features=True,
)
