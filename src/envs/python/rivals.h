/* rivals.h -- packages that list the same file with different content. uv installs packages in
 * parallel and the last one to write a file wins; its order depends on nothing that can be
 * computed. So the installed tree is asked: a package whose content is found there goes above the
 * others. */
#pragma once
#include "envs/python/split.h"

/* Fills split->order with the rivals, the topmost first: A comes before B when more of the files
 * that both list have A's content. Without a difference, and in a cycle, the order of the packages
 * is kept. root: the installed tree, before anything is moved. Entered. */
int rivals_order(struct split *split, int root, struct error *err);
