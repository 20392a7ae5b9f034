"""Search among the partitions that satisfy every hard constraint.

The kernels know graphs, colours and costs; they know no samples, estimators or files.
"""
