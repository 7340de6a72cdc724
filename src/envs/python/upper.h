/* upper.h -- what lies on top of an environment (an upper of overlayfs), brought in line with
 * another list of layers than the one it was made on.
 * 1. Files that commands made stay on top of the new layers; those of packages that are installed
 * by name (`forced`) go, so that the layers show.
 * 2. The upper is mounted nowhere meanwhile. What is in it was made by commands in a sandbox: no
 * link is followed, nothing is read without a bound.
 * 3. Doing it again changes nothing: a crash on the way is put right by the next call. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "layers/store.h"

struct upper_change {
	text_list before, after; /* layer ids; `before` may be empty: not known */
	/* Normalised names of packages whose files in the upper give way. The files of another
	 * package that is new in `after` go if they are all there, as the layer has them: copies
	 * that were made while a sandbox ran. One that a command has changed since stays whole. */
	text_list forced;
};
int env_upper_settle(const struct layer_store *layers, int upper, const struct upper_change *change,
	struct error *err);
