"""The facts of everything denspu ships, in the order of the walk."""

from __future__ import annotations

from denspu._registry import Entry, Registry

DENS_PU = "Sevetlidis et al. 2023, Dens-PU"

METHODS = (
    Entry(
        key="dens_pu",
        kind="method",
        target="denspu.methods.dens_pu:DensPU",
        summary="Boundary around densified positives; P against the surest outside it",
        paper=DENS_PU,
        assumption="SCAR",
        scenario="any",
        deep=True,
        inputs=("table", "image"),
        uses_known_negatives=True,
    ),
)

ENCODERS = (
    Entry(
        key="identity",
        kind="encoder",
        target="denspu.encoders:IdentityEncoder",
        summary="The input itself: embeddings you already have, flattened pixels",
        inputs=("table", "image"),
    ),
    Entry(
        key="tabular",
        kind="encoder",
        target="denspu.encoders:TabularEncoder",
        summary="Impute, standardise, one-hot",
        inputs=("table",),
    ),
    Entry(
        key="cae",
        kind="encoder",
        target="denspu.encoders:CAEEncoder",
        summary="Convolutional autoencoder trained on the positives, 512 values",
        paper=DENS_PU,
        deep=True,
        inputs=("image",),
    ),
    Entry(
        key="contrastive",
        kind="encoder",
        target="denspu.encoders:ContrastiveEncoder",
        summary="Rows told apart from each other on the unit sphere, P and U together",
        paper="Chen et al. 2020, SimCLR",
        deep=True,
        inputs=("image", "table"),
    ),
)

DENSIFIERS = (
    Entry(
        key="midpoint",
        kind="densifier",
        target="denspu.density:Midpoint",
        summary="Segments between positives, λ Gaussian around the midpoint",
        paper=DENS_PU,
        inputs=("embedding",),
    ),
    Entry(
        key="literal",
        kind="densifier",
        target="denspu.density:LiteralVariance",
        summary="Segments between positives, λ with eq. 3's printed variance",
        paper=DENS_PU,
        inputs=("embedding",),
    ),
    Entry(
        key="mixup",
        kind="densifier",
        target="denspu.density:Mixup",
        summary="Segments between positives, λ ~ Beta(α, α)",
        paper="Zhang et al. 2018, mixup",
        inputs=("embedding",),
    ),
    Entry(
        key="great_circle",
        kind="densifier",
        target="denspu.density:GreatCircle",
        summary="Arcs between positives on the sphere, λ Gaussian around the middle",
        inputs=("embedding",),
    ),
    Entry(
        key="none",
        kind="densifier",
        target="denspu.density:NoDensity",
        summary="The positives alone",
        inputs=("embedding",),
    ),
)

DETECTORS = (
    Entry(
        key="isolation_forest",
        kind="detector",
        target="denspu.detectors:IsolationForest",
        summary="How many random splits isolate a row",
        paper="Liu et al. 2008, Isolation Forest",
        inputs=("embedding",),
    ),
    Entry(
        key="extended_isolation_forest",
        kind="detector",
        target="denspu.detectors:ExtendedIsolationForest",
        summary="How many random planes isolate a row",
        paper="Hariri et al. 2019, Extended Isolation Forest",
        inputs=("embedding",),
    ),
    Entry(
        key="knn",
        kind="detector",
        target="denspu.detectors:KNNDistance",
        summary="Distance to the nearest rows",
        paper="Ramaswamy et al. 2000, Mining outliers from large data sets",
        inputs=("embedding",),
    ),
    Entry(
        key="density_ratio",
        kind="detector",
        target="denspu.detectors:DensityRatio",
        summary="Share of labelled positives among the nearest of P and U",
        inputs=("embedding",),
    ),
    Entry(
        key="mahalanobis",
        kind="detector",
        target="denspu.detectors:Mahalanobis",
        summary="Distance from one Gaussian cloud",
        paper="Ledoit and Wolf 2004, A well-conditioned estimator for covariance",
        inputs=("embedding",),
    ),
    Entry(
        key="sphere_density",
        kind="detector",
        target="denspu.detectors:SphereDensity",
        summary="Kernel density of directions (von Mises-Fisher)",
        paper="Hall et al. 1987, Kernel density estimation with spherical data",
        inputs=("embedding",),
    ),
    Entry(
        key="local_outlier_factor",
        kind="detector",
        target="denspu.detectors:LocalOutlierFactor",
        summary="Density relative to the nearest neighbours",
        paper="Breunig et al. 2000, LOF",
        inputs=("embedding",),
    ),
    Entry(
        key="one_class_svm",
        kind="detector",
        target="denspu.detectors:OneClassSVM",
        summary="A kernel boundary around the rows",
        paper="Schölkopf et al. 2001, Support of a high-dimensional distribution",
        inputs=("embedding",),
    ),
)

SELECTORS = (
    Entry(
        key="by_score",
        kind="selector",
        target="denspu.selection:ByScore",
        summary="Least normal leftovers first",
        paper=DENS_PU,
        inputs=("embedding",),
    ),
    Entry(
        key="by_distance",
        kind="selector",
        target="denspu.selection:ByDistance",
        summary="Leftovers farthest from any positive first (eq. 5)",
        paper=DENS_PU,
        inputs=("embedding",),
    ),
    Entry(
        key="random_leftover",
        kind="selector",
        target="denspu.selection:RandomLeftover",
        summary="Leftovers at random",
        paper=DENS_PU,
        inputs=("embedding",),
    ),
    Entry(
        key="random_unlabeled",
        kind="selector",
        target="denspu.selection:RandomUnlabeled",
        summary="Unlabelled rows at random",
        paper=DENS_PU,
        inputs=("embedding",),
    ),
)

CLASSIFIERS = (
    Entry(
        key="vgg16",
        kind="classifier",
        target="denspu.classifiers:VGG16Classifier",
        summary="VGG-16 with the paper's head, from scratch",
        paper="Simonyan and Zisserman 2015, VGG",
        deep=True,
        inputs=("image",),
    ),
    Entry(
        key="logistic",
        kind="classifier",
        target="sklearn.linear_model:LogisticRegression",
        summary="Logistic regression on the embedding",
        defaults={"max_iter": 1000},
        inputs=("embedding",),
    ),
    Entry(
        key="gradient_boosting",
        kind="classifier",
        target="sklearn.ensemble:HistGradientBoostingClassifier",
        summary="Boosted trees on the embedding",
        inputs=("embedding",),
    ),
    Entry(
        key="svm",
        kind="classifier",
        target="sklearn.svm:SVC",
        summary="Kernel machine on the embedding, for up to some 10,000 rows",
        paper="Cortes and Vapnik 1995, Support-vector networks",
        inputs=("embedding",),
    ),
)

REFINERS = (
    Entry(
        key="network",
        kind="refiner",
        target="denspu.refinement:NetworkRefiner",
        summary="The encoder's network trained on, first P against U, then on labels",
        deep=True,
        inputs=("image",),
        uses_known_negatives=True,
    ),
    Entry(
        key="embedding",
        kind="refiner",
        target="denspu.refinement:EmbeddingRefiner",
        summary="Cross-fitted trees, kernels and neighbours on the embedding",
        inputs=("embedding",),
        uses_known_negatives=True,
    ),
    Entry(
        key="ranking",
        kind="refiner",
        target="denspu.refinement:RankingRefiner",
        summary="Rare positives: boosted trees of P against U, then against the top",
        inputs=("embedding",),
        uses_known_negatives=True,
    ),
)

REGISTRY = Registry(
    METHODS + ENCODERS + DENSIFIERS + DETECTORS + SELECTORS + CLASSIFIERS + REFINERS
)
