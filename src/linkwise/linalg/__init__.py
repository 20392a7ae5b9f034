"""Linear algebra of graphs: Laplacians, operators, eigenvectors.

Nothing here knows samples, constraints or clusters: matrices in, matrices and
certificates out.
"""
