/* install_internal.h -- what the files of the judge by sources.json share. */
#pragma once
#include "policy/inputs.h"
#include "policy/internal.h"
#include "policy/sources_internal.h"

/* install.c */
void sources_deny(struct judge *j, const char *subject, const struct error *err);
#define sources_ask(j, subject, ...) judge_ask(j, subject, "sources: " __VA_ARGS__)
/* The address of an index, an archive or a repository that a package comes from. */
void sources_judge_url(struct judge *j, const char *subject, const char *program, const char *url);

/* The checks of sources.h, within what the judgement may take. Where that is spent they are 0: it
 * is asked for then. */
int judge_check_package(
	struct judge *j, const char *program, const char *package, struct error *err);
int judge_check_registry(struct judge *j, const char *program, const char *url, struct error *err);
int judge_check_remote(struct judge *j, const char *remote, struct error *err);
int judge_check_domain(struct judge *j, const char *host, struct error *err);

/* install_files.c */
/* Where a relative path may be meant: nowhere that is known, in one place, or in either of two. */
struct places {
	const char *dirs[2];
	size_t count;
};
struct places places_of(const struct judge *j, const char *path);
struct project { /* what is installed, and by which program */
	const char *subject, *program;
	struct places places; /* of its project */
	bool reads_project;   /* the packages of its project are installed */
	bool is_named;	      /* others are named: a project may be missing */
	text_list lists;      /* requirement files, as written */
	text_list trees;      /* directories that are installed, as written */
	text_list scripts;    /* that uv runs */
};
/* Judges the packages of files; of each that isn't read yet, and can't be judged, it is asked for.
 */
void judge_project(struct judge *j, const struct project *project);
/* The file as one of a kind. NULL: it was asked for, or is missing and needn't be there. */
struct policy_input *input_read(
	struct judge *j, const char *subject, const char *path, bool is_needed);

/* git_config.c */
/* A configuration of git, parsed once for all rounds and policies. false: no work is left. */
bool input_parse_git(struct judge *j, struct policy_input *input);

/* git_remotes.c */
void judge_git_remotes(struct judge *j, const char *subject, const shell_words *words, size_t at);
