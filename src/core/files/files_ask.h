/* files_ask.h -- questions to a file server: what files*.c and tree_archive*.c share, with packages
 * and with changes that are applied. Private to core. */
#pragma once
#include <dirent.h>
#include <sys/stat.h>
#include "core/files/file_servers.h"
#include "core/files/files.h"
#include "core/internal.h"

/* ---- files.c ---- */

/* The beginning of every verb here: may it be done? Then the workspace is in use. */
int files_enter(
	const struct request *request, enum verb verb, struct core_workspace *w, struct error *err);
/* `path` as a caller gives it, without "", "." and slashes too many; ERR_INVALID: it has "..". */
int files_clean_path(const char *path, char out[FILE_PATH_MAX], struct error *err);
/* Of a request that can't be made: done is called at the next turn of the loop. */
void files_refuse(struct core_workspace *w, const struct error *err, files_fn *done, void *ctx);
/* Asks a server, and reads its answer. */
void files_ask(struct core_workspace *w, const struct file_ask *ask, files_fn *done, void *ctx);

/* ---- files_write.c: workspaces/<id>/.in, and how much room there is ---- */

/* A temporary name, in the directory of the final one. */
#define FILES_STAGE_SIZE (sizeof ".carrel-" + ID_LEN)
void files_make_stage(char stage[FILES_STAGE_SIZE]);
/* Notes, durably enough for a crash of core, that an upload makes `stage` at or above `clean`.
 */
int files_note_stage(
	struct core_workspace *w, const char *stage, const char *clean, struct error *err);
/* Removes it, when the server that made it couldn't (is_left), and the note. */
void files_forget_stage(
	struct core_workspace *w, const char *stage, const char *clean, bool is_left);
void files_charge(struct core_workspace *w, uint64_t bytes);
int files_over_limit(const struct core_workspace *w, struct error *err);
