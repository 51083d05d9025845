"""MODL: Bayes-optimal discretization and grouping, on contingency tables alone.

The parts of a column are its intervals or groups. A regression's target has intervals, and a grid cells: a part of the
column with an interval of the target. The cells of a grid of quantiles hold neighbouring values.
"""

from tabsym.modl.columns import Groups, Intervals, fit_column
from tabsym.modl.criterion import CRITERIA, grouping_cost, interval_cost
from tabsym.modl.groups import group
from tabsym.modl.intervals import discretize
from tabsym.modl.partition import Given, Partition, Settings
