"""Pieces of docstring that both trees share."""

TREE_PARAMETERS = """\
max_depth : int or None, default None
    Maximal number of splits on the way to a leaf.
min_samples_split : int or float, default 2
    Rows that a node needs to be split; a float is a fraction of all.
min_samples_leaf : int or float, default 1
    Rows that each branch of a split needs; a float is a fraction of all.
min_weight_fraction_leaf : float, default 0.0
    Fraction of the total weight that each branch needs.
max_features : int, float, {"sqrt", "log2"} or None, default None
    Columns drawn for each split, or their fraction; more where none of them splits. None: all.
min_impurity_decrease : float, default 0.0
    By how much a split must lower the impurity, weighted by the fraction of rows in the node.
smooth : "auto" or float, default "auto"
    Shrinkage of each category's mean while a split is searched, as a number of rows at the mean of categories, so that
    columns of many categories do not win by chance. "auto": at each node and column, the variance within categories
    over the variance between them; a column whose categories differ no more than by chance is not split there. 0: none,
    which finds the subset that is best for the training rows.
handle_unknown : {"similar", "similar_per_node", "training_counts", "node_value"}, default "similar"
    How rows with a category that is not in the training data are predicted. "similar": the weighted mean of the
    predictions with the category replaced by each similar known one (a donor). "similar_per_node": down both
    branches, weighted by the donors in each, anew at every node (the poster's wording). "training_counts": down
    both branches, weighted by their training rows. "node_value": by the value of the node that splits the column.
encoder : TIWSEncoder or None, default None
    Finds similar categories on the same table; None: ``TIWSEncoder()``. With ``method="poster"`` the similarities as
    published are the weights. A clone of it is fitted on the categorical columns that the tree splits, if there are
    any and `handle_unknown` needs donors.
context : {"batch", "row", "observed"} or None, default None
    The rows that describe an unknown category: None, as set in the encoder, by default "batch": all its rows in the
    call, so that its prediction can depend on the other rows of the call. "row": the row alone.
    "observed": what ``encoder_.observe`` was given.
cols : list of str (or positions, for arrays), one of them, "all" or None, default None
    Categorical columns; None: text, object and category columns. All others are numeric; dates are days.
random_state : int, RandomState or None, default None
    Of the columns drawn, where `max_features` is not all; nothing else is random."""

TREE_ATTRIBUTES = """\
tree_ : Tree
    Arrays over the nodes: feature, threshold, left, right, symbols (codes of categories), value, n_rows, impurity and
    more.
encoder_ : TIWSEncoder or None
    Fitted, if donors can be needed.
feature_importances_ : ndarray of shape (n_features_in_,)
    The fraction of the total decrease of impurity that is due to each column.
max_features_ : int
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features_in_,)
    Where the columns have names."""

TREE_NOTES = """\
Numbers are split halfway between values; missing ones go to the better branch, or, where a node had none, to the
branch with more rows. A missing category is a category of its own. A known category that no row of the node has goes
to the branch with more rows, by weight. Among splits that are equally good the first column's wins, then the lower
threshold. Rows of weight 0 count as absent."""
