"""The arithmetic of fitted parts as torch modules, ready to become an ONNX graph.

Each module gives the numbers of the NumPy or scikit-learn code it stands for, from
the same fitted arrays, without loops over rows and without branches on values.
"""
