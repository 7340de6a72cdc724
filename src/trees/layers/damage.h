/* damage.h -- layers that are known to be damaged: layers/.damaged/<layer>, an empty file for each.
 * 1. A comparison of a whole layer with its hashes sets the mark or takes it away; a layer that is
 * published under the name again loses it.
 * 2. No sandbox starts on a layer with a mark. While nothing is damaged that costs one look, at a
 * directory that does not exist.
 * Package layers and frozen ones (snap-<id>) alike. `layers` is the directory, and the caller has
 * entered the home. */
#pragma once

#define DAMAGE_DIRECTORY ".damaged"
#define LAYER_NAME_MAX 128
#define DAMAGE_PATH_MAX (sizeof DAMAGE_DIRECTORY + 1 + LAYER_NAME_MAX)

bool damage_is_any(int layers);
bool damage_is_marked(int layers, const char *layer);
int damage_mark(int layers, const char *layer); /* -1 with errno */
void damage_clear(int layers, const char *layer);
