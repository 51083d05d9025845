"""Faults planted one by one, and whether a test finds each: a check of the tests, run by hand.

    python tests/mutations.py [--only WORD]

Each fault is a text that is replaced in one file of a copy of the package; the
tests named beside it run against the copy, and must fail. To add one, add a
line to FAULTS. Not collected by pytest, as it takes minutes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
UNITS, COMBINATIONS, KERNELS = "tests/test_units.py", "tests/test_combinations.py", "tests/test_kernels.py"
NATIVE, TIWS = "tests/test_native_categories.py", "tests/test_tiws.py"
EVIDENCE, NEWTON = "tests/test_newton_evidence.py", "tests/test_newton.py"
CLASSES = "tests/test_newton_classes.py"
STACK, FORMULAS = "tests/test_stacking.py", "tests/test_formula_evidence.py"
TORCH, MORE = "tests/test_torch.py", "tests/test_torch_more.py"


@dataclass(frozen=True)
class Fault:
    name: str
    file: str
    old: str
    new: str
    tests: str  # files, and `-k` words after a colon


FAULTS = [
    Fault("stack: margins are in-sample", "stacking/crossed.py",
          "self._clones[fold] = self.learner.fit(self.splits[fold][0])",
          "self._clones[fold] = self.learner.fit(np.arange(len(self.learner.y)))", f"{STACK}:by_hand"),
    Fault("stack: evidence knows the fold it judges by", "stacking/crossed.py",
          "return np.setdiff1d(self._splits[fold][0], self._splits[other][1], assume_unique=True)",
          "return self._splits[other][0]", f"{STACK}:evidence_by_hand"),
    Fault("stack: the margin is forgotten in prediction", "integrations/margins.py",
          "return trees + np.asarray(margin, dtype=np.float64).reshape(trees.shape)", "return trees",
          f"{STACK}:by_hand"),
    Fault("stack: rows held out have weight 1", "stacking/base.py",
          "y[test], None if weight is None else weight[test])", "y[test], None)", f"{STACK}:weights_of"),
    Fault("stack: round 0 is not among the rounds", "stacking/evidence.py",
          "if found is not None and found.tally.is_certain and found.tally.loss < started.tally.loss:",
          "if found is not None:", f"{STACK}:hurts"),
    Fault("stack: an uncertain gain is taken", "stacking/tally.py",
          "return self.gain > ERRORS * self.error", "return self.gain > 0", f"{STACK}:standard_error"),
    Fault("stack: nested variances know the fold", "stacking/crossed.py",
          "held = held_precisions(self._crossed.clone(beside))", "held = held_precisions(self._crossed.clone(wanted))",
          f"{STACK}:nested"),
    Fault("stack: judged by margins that hold what all rows know", "stacking/crossed.py",
          "return self.learner.margins(self.clone(fold), self.splits[fold][1])",
          "return self._margins_to_train_on(fold)", f"{STACK}:margins_to_train"),
    Fault("stack: shares are swapped", "stacking/evidence.py",
          "mixed = [(1 - share) * first + share * second", "mixed = [share * first + (1 - share) * second",
          f"{STACK}:shares_the"),
    Fault("newton: weights do not reach the curvature", "wide/newton/kernels_rows.py",
          "            bend *= weight[i]\n", "",
          f"{EVIDENCE}:weights_are_precisions"),
    Fault("newton: the intercept is taken for known", "wide/newton/spreads.py",
          "if shared.shape[1]:", "if False:", f"{EVIDENCE}:yestuff or reml"),
    Fault("newton: dispersion without the degrees of freedom", "wide/newton/variances.py",
          "left = max(turns.total - used, 0.05 * turns.total)", "left = turns.total", f"{EVIDENCE}:yestuff or reml"),
    Fault("newton: what cells share is handed up whole", "wide/newton/kernels_entries.py",
          "/ (own * cells[p] + theirs)", "/ (own * cells[p])", f"{EVIDENCE}:dense_optimum and squared"),
    Fault("newton: a walk forgets a neighbour", "wide/newton/kernels_walk.py",
          "ends = (1.0 if j > 0 else 0.0) + (1.0 if j < n - 1 else 0.0)\n            pivots[j]",
          "ends = 1.0\n            pivots[j]", f"{EVIDENCE}:smooth"),
    Fault("newton: entries of a walk of classes do not follow the one before", "wide/newton/kernels_walk.py",
          "held += precision * loose[j - 1]", "held += 0.0 * loose[j - 1]", f"{EVIDENCE}:walks_of"),
    Fault("newton: classes of rows are counted without weights", "wide/newton/standing.py",
          "self.weight if len(self.weight) else None, (1 + piece.size)", "None, (1 + piece.size)", f"{CLASSES}:stand"),
    Fault("newton: rows of classes miss their last steps", "wide/newton/standing.py",
          "        self._catch_up()\n        self._waiting = piece, steps.copy()",
          "        self._waiting = piece, steps.copy()", f"{CLASSES}:stand"),
    Fault("newton: rows of classes are not scaled", "wide/newton/kernels_classes.py",
          "            values[i, k] = p\n            sums[c, k] += share * p", "            sums[c, k] += share * p",
          f"{CLASSES}:stand"),
    Fault("newton: matrices of rows are those of an earlier move", "wide/newton/spreads_classes.py",
          "if self._known_at != self.turns.n_moves:", "if self._known_at < 0:", f"{CLASSES}:matrices"),
    Fault("newton: matrices of rows lose their factor", "wide/newton/kernels_classes.py",
          "sums[c, j] += share[i] * matrices[i, j]", "sums[c, j] += matrices[i, j]", f"{CLASSES}:matrices"),
    Fault("newton: intercepts of classes are known in what is weighed", "wide/newton/spreads_classes.py",
          "+ float((_inner(followed, followed) * flat).sum())", "", f"{EVIDENCE}"),
    Fault("link: each loss looks for crosses", "estimators/linking.py",
          "scoring, rng, raws, chosen)", "scoring, rng, raws)", f"{NEWTON}:same_crosses"),
    Fault("newton: what classes share is in their certainty", "wide/newton/spreads_classes.py",
          "Posterior(beside @ self.own @ beside, followed, self.flat", "Posterior(self.own, self.followed, self.flat",
          f"{EVIDENCE}:walks_of or several_classes"),
    Fault("newton: draws without the penalty's part", "wide/newton/posterior.py",
          "own = np.sqrt(precision) * rng.standard_normal(right.shape)", "own = np.zeros(right.shape)",
          f"{EVIDENCE}:draws"),
    Fault("newton: draws settle by turns alone", "wide/newton/posterior.py",
          "moved += self._hand_up(place)", "moved += 0.0", f"{EVIDENCE}:whole_posterior"),
    Fault("newton: what cells share is drawn without their penalty", "wide/newton/posterior.py",
          "left = self.right[place] - self.turns.precision[place] * self.found[place]", "left = self.right[place]",
          f"{EVIDENCE}:whole_posterior"),
    Fault("newton: small targets are left small", "wide/target_units.py",
          "if not 0.0 < mean < 1.0:", "if True:", f"{EVIDENCE}:log_links"),
    Fault("newton: the dispersion stays in the target's unit of training", "estimators/solving.py",
          "dispersion = answer.certainty.dispersion * units.of_loss", "dispersion = answer.certainty.dispersion",
          f"{EVIDENCE}:log_links"),
    Fault("newton: crosses behind log links are weighed in the user's unit", "estimators/crossing.py",
          "rows = TargetUnits.of(rows, loss).rows(rows)", "rows = rows", f"{EVIDENCE}:another_unit"),
    Fault("newton: missing values beside a walk leave the level as it is", "wide/newton/kernels_walk.py",
          "            followed += (bend * own) ** 2\n", "", f"{EVIDENCE}:one_go"),
    Fault("newton: sums of several lanes are not added up", "wide/newton/kernels_rows.py",
          "pulls[at % length, 1] += pulls[at, 1]", "pass", f"{EVIDENCE}:dense_optimum"),
    Fault("newton: lanes of squared slopes are not added up", "wide/newton/kernels_rows.py",
          "slopes[at % (len(slopes) // n_lanes)] += slopes[at]", "pass", f"{EVIDENCE}:dense_optimum and squared"),
    Fault("newton: tweedie's roots have twice the curvature", "wide/newton/kernels_rows.py",
          "max(0.5 * (value + share), LEAST)", "max(value + share, LEAST)", f"{EVIDENCE}:one_and_a_half"),
    Fault("formulas: what rows read twice is apart", "wide/newton/formula_spreads.py",
          "if sum(read.block == block for read in self.layout.reads) == 1:", "if True:", FORMULAS),
    Fault("formulas: the intercept is taken for known", "wide/newton/formula_spreads.py",
          "columns = shared @ _root_of_inverse(self._flat_information)",
          "columns = 0.0 * shared @ _root_of_inverse(self._flat_information)", FORMULAS),
    Fault("formulas: vectors have no matrix", "wide/newton/formula_spreads.py",
          "own[found.row // rank, found.row % rank, found.col % rank] = found.data",
          "own[found.row // rank, found.row % rank, found.col % rank] = found.data * (found.row == found.col)",
          FORMULAS),
    Fault("formulas: variances of factors drift", "wide/newton/formulas.py",
          "moves -= free @ (np.linalg.pinv(free) @ moves)", "pass", FORMULAS),
    Fault("formulas: drawn variances without what others move", "wide/newton/formula_spreads.py",
          "self.diagonal = self._own + np.square(self._own[:, None] * means).mean(axis=1)",
          "self.diagonal = self._own", FORMULAS),
    Fault("stack: an objective by another name is not seen", "integrations/margins.py",
          "renamed = self._by_one_name(booster)", "renamed = booster", f"{STACK}:other_names"),
    Fault("stack: one row is certain", "stacking/tally.py",
          "if self.sums[0] ** 2 < 1.5 * self.sums[3]:", "if False:", f"{STACK}:one_row"),
    Fault("newton: classes do not pull at each other", "wide/newton/kernels_classes.py",
          "own[c, k, other] -= p * values[i, other]", "own[c, k, other] -= p * values[i, other] * (k == other)",
          f"{EVIDENCE}:multinomial"),
    Fault("newton: an unseen symbol is as certain as any", "wide/model.py",
          "np.where(codes == UNSEEN, self.certainty.variances[read.block], 0.0)", "0.0 * codes",
          f"{EVIDENCE}:never_seen"),
    Fault("newton: a row counts itself among the rows of its symbol", "wide/sources.py",
          "others = np.where(codes >= 0, counts[codes] - 1, 0)", "others = np.where(codes >= 0, counts[codes], 0)",
          f"{NEWTON}:rarity or counts_the_others"),
    Fault("newton: the loss is chosen by what was fitted", "estimators/linking.py",
          "training.take(order[:n_held_out]), training.take(order[n_held_out:])",
          "training.take(order[n_held_out:]), training.take(order[:n_held_out])", f"{NEWTON}:link"),
    Fault("newton: standard deviations stay in units of training", "estimators/solving.py",
          "sd, draws = certainty.sd * sizes, certainty.draws", "sd, draws = certainty.sd * 1.0, certainty.draws",
          f"{EVIDENCE}:yestuff or reml or sd"),
    Fault("torch: a refused code leaves its counts behind", "../integrations/tabsym_torch/kernels.py",
          "                wrong = t\n                break", "                return t", f"{MORE}:no_entry_leaves"),
    Fault("torch: state of options that were is used", "../integrations/tabsym_torch/compiled.py",
          "[name if name in buffers else None for name",
          "[name if name in self._optimizer.state[tables[0].parameter] else None for name", f"{MORE}:options_changed"),
    Fault("torch: a symbol twice in a row counts twice", "../integrations/tabsym_torch/kernels.py",
          "if k == padding or last[k] == row:", "if k == padding:", f"{TORCH}:twice_in_a_row"),
    Fault("torch: sums are divided by rows and not by counts", "../integrations/tabsym_torch/kernels.py",
          "scale = sign * whole / counts[i]", "scale = sign", f"{TORCH}:double_precision and OneHot"),
    Fault("torch: all symbols have one step count", "../integrations/tabsym_torch/kernels.py",
          "n = step[k, 0] + 1.0", "n = step.max() + 1.0 if i == 0 else step[symbols[0], 0]",
          f"{TORCH}:double_precision and OneHot"),
    Fault("torch: dampening at a symbol's first update", "../integrations/tabsym_torch/kernels.py",
          "buffer = g if n == 1.0 and dampening != 0.0 else ", "buffer = ", f"{TORCH}:double_precision and OneHot"),
    Fault("torch: rows of the kernel's arrays are not cleared", "../integrations/tabsym_torch/kernels.py",
          "        hits[distinct[i]] = 0\n", "", f"{TORCH}:double_precision and OneHot"),
    Fault("torch: evaluations are counted", "../integrations/tabsym_torch/counting.py",
          "_on_gradient(output, _Call(table, self.pairs_of(module, args, kwargs)))",
          "self.table.batches.append([self.pairs_of(module, args, kwargs)])", f"{TORCH}:ways and OneHot"),
    Fault("torch: counts outlive their gradient", "../integrations/tabsym_torch/counting.py",
          "if table.batches and table.gradient_is_new():", "if False:", f"{TORCH}:ways and OneHot"),
    Fault("torch: calls of autograd.grad count", "../integrations/tabsym_torch/counting.py",
          "table.backward, table.reached = backward, []", "table.backward = backward", f"{TORCH}:ways and OneHot"),
    Fault("torch: two backward passes through one call count twice", "../integrations/tabsym_torch/counting.py",
          "if self.counted is not table.batches and self not in table.reached:", "if self not in table.reached:",
          f"{TORCH}:ways_sum"),
    Fault("torch: weight decay in operations ignores the sign", "../integrations/tabsym_torch/rules.py",
          'grad = -rows.grad if options["maximize"] else rows.grad', "grad = rows.grad", f"{MORE}:operations"),
    Fault("torch: the state of a file stays one number", "../integrations/tabsym_torch/state.py",
          "state[name] = numbers.reshape(-1).expand(parameter.shape[dim]).clone()", "pass", f"{MORE}:plain_optimizer"),
    Fault("torch: numeric inputs get the symbols' estimator", "../integrations/tabsym_torch/operations.py",
          "factor[torch.isin(entries.symbols, table.numeric)] = 1.0", "pass", f"{TORCH}:test_sum and Columns"),
    Fault("torch: processes keep their counts to themselves", "../integrations/tabsym_torch/distributed.py",
          "said = torch.cat([body for body, _ in pieces])", "said = pieces[0][0]", f"{TORCH}:two_processes"),
    Fault("torch: histories are not told apart", "../integrations/tabsym_torch/each.py",
          "yield (history == i).nonzero().squeeze(1)", "yield (history >= 0).nonzero().squeeze(1)\n        return",
          f"{TORCH}:double_precision and ASGD"),
    Fault("tiws: rows are encoded by their own targets", "encoders/tiws/held_out.py",
          "others = fitted.sums - own", "others = fitted.sums", f"{TIWS}:random_keys"),
    Fault("tiws: symbols are left out one by one", "encoders/tiws/held_out.py",
          "MOST_ALONE = 20", "MOST_ALONE = 10**9", f"{TIWS}:random_keys"),
    Fault("tiws: a left-out symbol is its own donor", "tiws/donors.py",
          "pull[held, own[held]] = -np.inf", "pass", f"{TIWS}:donors_are"),
    Fault("tiws: the mean is not estimated anew without a symbol", "tiws/regression.py",
          "precision -= np.outer(self._ones, self._ones) / self._ones.sum()", "pass", f"{TIWS}:left_out"),
    Fault("tiws: documents without a word are at the origin", "tiws/column.py",
          "values = np.where(empty[:, None], self.components.centre, found.values)", "values = found.values",
          f"{TIWS}:document_regression"),
    Fault("tiws: profiles are not drawn to the base", "tiws/profiles.py",
          "root = np.sqrt((counts.data + self.kappa * share) / total)",
          "root = np.sqrt(counts.data / (total - self.kappa))", f"{TIWS}:document_regression"),
    Fault("tiws: sums of another origin are added as they are", "tiws/counts.py",
          "b.sums[j].counted_from(a.sums[j].origin)", "b.sums[j]", f"{TIWS}:two_halves"),
    Fault("tiws: what was observed keeps its old words", "encoders/tiws/merging.py",
          "one.placed(of_words,", "one.placed(np.arange(len(of_words)),", f"{TIWS}:two_halves or observed"),
    Fault("tiws: one interval score too few", "tiws/intervals.py",
          "(len(self.scores) + 1) - 1e-9)) - 1", "len(self.scores) - 1e-9)) - 1", f"{TIWS}:conformal"),
    Fault("tiws: components of variance by rows and not weights", "tiws/sums.py",
          "between = float((outer.mean() - (l - 1) * within) / balance)", "between = float(outer.mean() / balance)",
          f"{TIWS}:document_regression"),
    Fault("tiws: idf over the batch where each stands alone", "tiws/poster.py",
          "    if batch:", "    if True:", f"{TIWS}:printed"),
    Fault("pairs: rows of no symbol are counted", "stats/kernels_pairs.py",
          "            if code >= 0:\n                to", "            if True:\n                to",
          "tests/test_pairs.py"),
    Fault("similar: working responses without what is left over", "estimators/similar.py",
          "own[codes] + left", "own[codes]", "tests/test_similar.py"),
    Fault("donors: the group of most donors and not of most weight", "encoders/modl/donors.py",
          "np.add.at(by_group.T, group_of, weights.T)", "np.add.at(by_group.T, group_of, (weights > 0).T * 1.0)",
          "tests/test_modl_options.py:donors"),
    Fault("rows of NaN in sparse one-hot columns without a limit", "encoders/onehot/matrix.py",
          "if sum(numbers) <= max(", "if True or sum(numbers) <= max(", "tests/test_onehot_inverse.py:too_many"),
    Fault("rare symbols by rows instead of weights", "encoders/onehot/column.py",
          "None if weight is None else weight[codes >= 0]", "None", "tests/test_onehot_options.py:weights"),
    Fault("a row of zeros is not the dropped symbol", "encoders/onehot/column.py",
          "[UNSEEN, self.dropped]", "[UNSEEN, UNSEEN]", "tests/test_onehot_options.py:way_back"),
    Fault("numbers are taken where fit saw dates", "table/columns.py",
          "if fitted.goes_with(self.measure):", "if True:", "tests/test_dates.py:told_apart"),
    Fault("native: objects are symbols in fit", "encoders/native.py",
          "who=type(self).__name__, by_value=True)\n        columns", "who=type(self).__name__)\n        columns",
          f"{NATIVE}:objects_that_are_numbers"),
    Fault("native: numbers are taken where fit saw dates", "encoders/native.py",
          "table[name].check_measure(self.measures_[name])", "pass", f"{NATIVE}:dates"),
    Fault("native: mixtures that begin late are symbols", "encoders/native.py",
          "check_one_type(name, raw.symbols)", "pass", f"{NATIVE}:far_down"),
    Fault("native: levels in the order of categories", "encoders/native.py",
          "order = pd.unique(present)", "order = np.unique(present)", f"{NATIVE}:order_of_the_rows"),
    Fault("native: an unseen symbol is one called (unseen)", "encoders/native.py",
          "if word not in known", "", f"{NATIVE}:words"),
    Fault("native: numbers that are all missing stay numbers", "encoders/native.py",
          "if empty or column.name", "if column.name", "tests/test_native_tables.py:any_value"),
    Fault("native: categories without levels", "encoders/native.py",
          "max(1, len(alphabet) + has_other)", "len(alphabet) + has_other", "tests/test_native_tables.py:any_value"),
    Fault("native: boosters are asked about no rows", "encoders/native_pipeline.py",
          "if len(frame):", "if True:", "tests/test_native_tables.py:no_rows"),
    Fault("dates of a zone are labelled in UTC", "modl/labels.py",
          'utc.tz_convert(zone or "UTC")', 'utc.tz_convert("UTC")', "tests/test_dates.py:labels"),
    Fault("mean weights of latent vectors are not spread over their components", "estimators/training_data.py",
          "if block.rank > 1:  # codes", "if False:  # codes", f"{COMBINATIONS}:vectors"),
    Fault("held-out loss without weights", "wide/descent.py",
          "weights=rows.shares))", "weights=None))",
          f"{COMBINATIONS}:held_out or best_epoch"),
    Fault("huber's delta is not brought into units of training", "estimators/training_data.py",
          "parameter=model.loss.parameter / model.units.scale", "parameter=model.loss.parameter",
          f"{COMBINATIONS}:delta or huber or unit_of_the_target"),
    Fault("the target's scale without weights", "estimators/beginning.py",
          "target = Moments.of(training.differences, training.weight) if loss.scales",
          "target = Moments.of(training.differences, None) if loss.scales", f"{COMBINATIONS}:hardly_any_weight"),
    Fault("numeric scales without weights", "estimators/beginning.py",
          "numerics = numeric_moments(layout, numbers, len(training.y), training.weight)\n    target",
          "numerics = numeric_moments(layout, numbers, len(training.y), None)\n    target",
          f"{COMBINATIONS}:hardly_any_weight"),
    Fault("a grown symbol has had no steps under the mean gradient", "estimators/fitting.py",
          "model.n_steps if options.is_dense else 0)", "0)", "tests/test_repairs.py:steps_of_the_others"),
    Fault("the offset stays in order where rows are stored shuffled", "estimators/training_data.py",
          "offset = None if offset is None else offset[order]", "offset = offset", f"{COMBINATIONS}:large_tables"),
    Fault("the weight stays in order where rows are stored shuffled", "estimators/training_data.py",
          "weight = weight[order] if len(weight) else weight", "weight = weight", f"{COMBINATIONS}:large_tables"),
    Fault("the starting constant ignores the offset", "estimators/beginning.py",
          "start = offset if config.init is None", "start = None if config.init is None",
          f"{UNITS}:offset or exposure"),
    Fault("the target's mean ignores the offset", "estimators/training_data.py",
          "return self.y if self.offset is None else self.y - self.offset[:, 0]", "return self.y", f"{UNITS}:offset"),
    Fault("sizes of blocks that terms share are not in the constants", "wide/units.py",
          "constants[shared] *= np.exp(times @ logs)", "constants[shared] *= 1.0", f"{UNITS}:exactly or read_with"),
    Fault("what centring moves is not handed to its home", "wide/units.py",
          "-= moved / home.constant", "-= 0.0 * moved / home.constant", "tests/test_repairs.py:handed_back"),
    Fault("init is taken for units of training", "wide/start.py",
          "started = model.units.to_training(layout, theta)", "started = theta.copy()", f"{UNITS}:init"),
    Fault("totals are not settled", "estimators/fitting.py",
          "        model = _settle(model, rows)", "        pass", f"{UNITS}:totals"),
    Fault("totals are settled without weights", "estimators/fitting.py",
          "shift = settled_shift(training_loss(model), scores_of(model, rows, shown), rows.y, weight)",
          "shift = settled_shift(training_loss(model), scores_of(model, rows, shown), rows.y, None)",
          f"{UNITS}:totals"),
    Fault("weights of later calls count by themselves", "estimators/fitting.py",
          "before = model.counts > 0", "before = model.counts < 0", f"{COMBINATIONS}:later_calls"),
    Fault("weights of later calls are divided by their own mean", "estimators/training_data.py",
          "training.weight / model.unit_weight", "training.weight / training.weight.mean()",
          f"{COMBINATIONS}:later_calls or unit_of_the_weights"),
    Fault("l1 shrinks at the optimizer's nominal rate", "wide/rules.py",
          "size = abs(state[row, 0]) - reach * l1", "size = abs(state[row, 0]) - rate * l1", f"{KERNELS}:lasso"),
    Fault("the best epoch comes back with the updates of the last", "wide/course.py",
          "self.kept = descent.state.copy(), descent.n_steps\n\n    def _tol",
          "self.kept = descent.state.copy(), 10**6\n\n    def _tol", "tests/test_repairs.py:best_epoch"),
    Fault("ftrl's memory is not rebased when the rate changes", "wide/descent.py",
          "if isinstance(options.optimizer, FTRL):", "if False:", "tests/test_repairs.py:ftrl"),
    Fault("a loss that runs away is borne with", "wide/convergence.py",
          "return not self.excess(loss) <= self.bearable", "return not np.isfinite(loss)",
          "tests/test_repairs.py:diverge"),
    Fault("what is left of a loss is asked of single entries alone", "wide/objective.py",
          "return bool(there.fun < -1.0)", "return False", "tests/test_repairs.py:silence"),
    Fault("what is left of a loss is not told of", "wide/convergence.py",
          "return REST * excess + LITTLE * self.start", "return excess", "tests/test_repairs.py:silence or noise"),
    Fault("decay of absent symbols is borne with", "estimators/automatic.py",
          "> MOST_DECAY:", "> np.inf:", "tests/test_repairs.py:decay"),
    Fault("what is forgotten between two rows is borne with", "estimators/automatic.py",
          "if symbols / batch > FORGOTTEN * memory:", "if symbols / batch >= 1e9:",
          "tests/test_repairs.py:memories"),
    Fault("updates of all rows are counted by rows", "estimators/automatic.py",
          "if full else (MOST_VISITS, MOST_PASSES)", "if False else (MOST_VISITS, MOST_PASSES)",
          "tests/test_repairs.py:updates"),
    Fault("a sample's loss is taken for that of all rows", "wide/convergence.py",
          "self._measure(self._descent.members)", "pass", "tests/test_repairs.py:heavy"),
    Fault("crosses are chosen by the order of categories", "estimators/crossing.py",
          "columns = {block: _by_appearance(column, order) for block, column in columns.items()}",
          "columns = {block: replace(column, codes=column.codes.take(order)) for block, column in columns.items()}",
          "tests/test_repairs.py:categories"),
    Fault("encoders: labels of rows are compared as sets", "table/same_rows.py",
          "or index.equals(other):", "or set(index) == set(other):", "tests/test_encoder_input.py:labels"),
    Fault("encoders: a column called all is what 'all' means", "table/features.py",
          'if isinstance(cols, str) and cols == "all":', 'if isinstance(cols, str) and cols == "every":',
          "tests/test_encoder_input.py:cols"),
    Fault("encoders: groups are not given to the splitter", "encoders/folds.py",
          "splitter.split(X, y, _check_groups(groups, len(y)))", "splitter.split(X, y, np.arange(len(y)))",
          "tests/test_folds.py:group"),
    Fault("encoders: folds choose the kind of target by themselves", "encoders/wide.py",
          'fold.set_params(target_type="classes" if classes else "continuous")', "pass",
          "tests/test_target_type.py:folds"),
    Fault("encoders: a fold is counted over all rows", "encoders/modl/out_of_fold.py",
          "fold.target.values, weight, fold.known)", "fold.target.values, weight, None)",
          "tests/test_modl_folds.py:other_folds or random_keys"),
    Fault("encoders: weights of a fold stay in the order of all rows", "stats/contingency.py",
          "weight = None if weight is None else weight[rows]",
          "weight = None if weight is None else weight[: len(rows)]", "tests/test_contingency.py:rows"),
    Fault("encoders: values that a fold does not hold are kept", "stats/contingency.py",
          "if not held.all():", "if False:", "tests/test_contingency.py:rows"),
    Fault("encoders: covariates are left out of the model", "encoders/wide.py",
          'others = self.numeric == "covariate"', 'others = self.numeric == "passthrough"',
          "tests/test_wide_encoder.py:covariates"),
    Fault("encoders: a symbol of one fold is unknown to the others", "encoders/modl/out_of_fold.py",
          "self.handling.of_folds()", "self.handling", "tests/test_folds.py:lack"),
    Fault("modl: nothing is cheaper than an infinite cost", "modl/hull.py",
          "return bool(cost < (than - TOLERANCE * abs(than) if math.isfinite(than) else than))",
          "return bool(cost < than - TOLERANCE * abs(than))", "tests/test_modl_hull.py:cheaper"),
    Fault("modl: bounds of passes are a nat too high", "modl/hull.py",
          "bounds.add(price, found.parts_cost + price * len(found.ends))",
          "bounds.add(price, found.parts_cost + price * len(found.ends) + 1.0)", "tests/test_modl_hull.py:each_pass"),
    Fault("modl: a search that stops claims a nat too much", "modl/hull.py",
          "            return min(float(lower[place]), best.cost)\n        price",
          "            return min(float(lower[place]) + 1.0, best.cost)\n        price",
          "tests/test_modl_hull.py:stops"),
    Fault("modl: the bound beside garbage is a nat too high", "modl/garbage_integrals.py",
          "return np.asarray(np.log(2.0 * half) + _ln_mean_exp(left, right))",
          "return np.asarray(np.log(2.0 * half) + _ln_mean_exp(left, right) - 1.0)",
          "tests/test_modl_garbage.py:integrals_over"),
    Fault("modl: the choice of a garbage group costs ln 2 from 7 modalities", "modl/criterion.py",
          "return LN2 if n_modalities > GARBAGE_FROM else 0.0", "return LN2 if n_modalities >= GARBAGE_FROM else 0.0",
          "tests/test_modl_criterion.py:groups"),
    Fault("modl: garbage groups are searched from 8 modalities left", "modl/group_search.py",
          'self.criterion == "khiops" and units.n_modalities >= GARBAGE_FROM',
          'self.criterion == "khiops" and units.n_modalities > GARBAGE_FROM',
          "tests/test_modl_local.py:7 and partition"),
    Fault("modl: garbage groups are searched from 8 modalities", "modl/group_search.py",
          'self.criterion == "khiops" and len(self.counts) >= GARBAGE_FROM',
          'self.criterion == "khiops" and len(self.counts) > GARBAGE_FROM', "tests/test_modl_local.py:7 and partition"),
    Fault("modl: quantiles as near to two boundaries go up in the lower half", "modl/quantiles.py",
          "np.where(tied, targets <= total / 2 + hair, down < up)", "np.where(tied, targets > total, down < up)",
          "tests/test_modl_quantiles.py:quantiles_as_near"),
    Fault("modl: R(T - 1; N) for the target's intervals", "modl/grid.py",
          "ln_universal(len(sizes) - 1, n_rows - 1)", "ln_universal(len(sizes) - 1, n_rows)",
          "tests/test_modl_grid.py:definition"),
    Fault("modl: the ranks of the target are left out", "modl/grid.py",
          "within = float(gammaln(sizes + 1).sum())", "within = 0.0", "tests/test_modl_grid.py:definition"),
    Fault("modl: what the target of a joined grid costs stays in its prior", "modl/grid_search.py",
          "labels = labels_of(np.unique(ends), self.rows.n_targets)\n"
          "        return with_target(self.rows, self.options, grid.source, grid.prior, labels)",
          "labels = labels_of(np.unique(ends), self.rows.n_targets)\n"
          "        prior = as_grid(self.rows, self.options, grid.source, labels).prior\n"
          "        return with_target(self.rows, self.options, grid.source, prior, labels)",
          "tests/test_modl_grid.py:definition"),
    Fault("modl: the granularity costs nothing", "modl/criterion.py",
          "return LN2 + math.log(n_candidates) + ln_universal(granularity, most_granularity(n_rows))",
          "return LN2 + math.log(n_candidates)", "tests/test_modl_criterion.py:specification"),
    Fault("modl: joins beside garbage are not looked at", "modl/local.py",
          "for step in range(1, min(len(merged), 8) + 1):", "for step in range(0):", "tests/test_modl_local.py:split"),
    Fault("modl: sweeps of moves are kept whatever they cost", "modl/local.py",
          "        if after.cost >= best.cost - 1e-9:\n            return best\n", "",
          "tests/test_modl_local.py:sweeps"),
    Fault("modl: modalities leave the garbage for nothing", "modl/local.py",
          "price = less - ground.with_garbage(n, size) if np.isfinite(less) else 0.0", "price = 0.0",
          "tests/test_modl_local.py:perturbed"),
    Fault("modl: the garbage group is the smallest", "modl/ground.py",
          "largest = int(np.argmax(sizes))", "largest = int(np.argmin(sizes))", "tests/test_modl_local.py:perturbed"),
]  # fmt: skip


def is_found(fault: Fault, folder: Path) -> bool:
    """Whether the tests fail with the fault in the copy."""
    path = folder / "tabsym" / fault.file
    text = path.read_text()
    if text.count(fault.old) != 1:
        raise SystemExit(f"{fault.name}: {fault.old!r} stands {text.count(fault.old)} times in {fault.file}")
    path.write_text(text.replace(fault.old, fault.new))
    if "jit import" in text:  # the compiler's cache watches one file of several
        for cached in folder.rglob("*.nb?"):
            cached.unlink()
    file, _, words = fault.tests.partition(":")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", file]
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{folder / 'integrations'}"}
    command += ["-k", words] if words else []
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    path.write_text(text)
    if done.returncode < 0:  # the fault killed the process, which nobody overlooks
        return True
    if done.returncode > 1:
        raise SystemExit(f"{fault.name}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}")
    return done.returncode == 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="faults whose name has this word")
    chosen = [fault for fault in FAULTS if parser.parse_args().only in fault.name]
    missed = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("tabsym", "integrations", "tests"):
            shutil.copytree(ROOT / part, folder / part)
        shutil.copy(ROOT / "pyproject.toml", folder)
        for fault in chosen:
            found = is_found(fault, folder)
            missed += [] if found else [fault.name]
            print(f"{'found ' if found else 'MISSED'}  {fault.name}", flush=True)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults found")
    raise SystemExit(bool(missed))


if __name__ == "__main__":
    main()
