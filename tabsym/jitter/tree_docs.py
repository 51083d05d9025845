"""Pieces of docstring that both trees share."""

TREE_PARAMETERS = """\
max_depth : int or None, default None
    Splits on the way to a leaf, at most.
min_samples_split : int or float, default 2
    Rows that a node needs to be split; a float is a share of all.
min_samples_leaf : int or float, default 1
    Rows that each side of a split needs; a float is a share of all.
min_weight_fraction_leaf : float, default 0.0
    Share of the total weight that each side needs.
max_features : int, float, {"sqrt", "log2"} or None, default None
    Columns drawn for each split, or their share; more where none of them splits. None: all.
min_impurity_decrease : float, default 0.0
    By how much a split must lower the impurity, weighed by the share of rows in the node.
smooth : "auto" or float, default "auto"
    Rows at the mean of categories that each category's mean is drawn by when a split is looked for, so that columns of
    many categories do not win by chance. "auto": at each node and column, the variance within categories over the one
    between them; a column whose categories differ no more than by chance is not split there. 0: none, which finds the
    subset that is best for the training rows.
handle_unknown : {"similar", "similar_per_node", "training_counts", "node_value"}, default "similar"
    How rows with a category that is not in the training data are predicted. "similar": the weighted mean of the
    predictions with the category replaced by each similar known one (a donor). "similar_per_node": down both
    branches, weighted by the donors in each, anew at every node (the poster's wording). "training_counts": down
    both branches, weighted by their training rows. "node_value": by the value of the node that splits the column.
encoder : TIWSEncoder or None, default None
    Learns, on the same table, which categories resemble each other; None: ``TIWSEncoder()``. Of one with
    ``method="poster"`` the similarities as printed are the weights. A clone of it is fitted on the columns that
    the tree splits, not at all where none are or `handle_unknown` needs no donors.
context : {"batch", "row", "observed"} or None, default None
    The rows that describe an unknown category: None, as the encoder has it, which is "batch": all its rows in the
    call, so that its prediction can depend on the rows that come with it. "row": the row alone.
    "observed": what ``encoder_.observe`` was given.
cols : list of str (or positions, for arrays), one of them, "all" or None, default None
    Columns of categories; None: text, object and category columns. All others are numbers; dates are days.
random_state : int, RandomState or None, default None
    Of the columns drawn, where `max_features` is not all; nothing else is left to chance."""

TREE_ATTRIBUTES = """\
tree_ : Tree
    Arrays over the nodes: feature, threshold, left, right, categories, value, n_rows, impurity and more.
encoder_ : TIWSEncoder or None
    Fitted, where donors may be needed.
feature_importances_ : ndarray of shape (n_features_in_,)
    Each column's part of the impurity that all splits took away.
max_features_ : int
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features_in_,)
    Where the columns have names."""

TREE_NOTES = """\
Numbers are split halfway between values; those that are missing go to the better side, or, where a node had none, to
the side with more rows. Missing categories are a category. A category that training showed, but not among a node's
rows, goes to the side with more rows, by weight. Of splits that are equally good the first column's wins, then the
lower
threshold. Rows of weight 0 count as absent."""
