"""Step 6 of the walk: ordinary supervised classification of P_L against Ñ."""

from denspu.classifiers.backbone import BackboneClassifier
from denspu.classifiers.network import NetworkClassifier
from denspu.classifiers.vgg16 import VGG16Classifier

__all__ = ["BackboneClassifier", "NetworkClassifier", "VGG16Classifier"]
