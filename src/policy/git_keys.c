/* The table of keys without effect on what runs. */
#include "policy/git_keys.h"

#include "policy/words.h"

enum subsection { WITHOUT, WITH, EITHER };
enum value {
	ANY,
	OFF,	 /* no value of a program: false */
	PAGER,	 /* what git takes for no pager */
	EDITOR,	 /* what git takes for no editor */
	ADDRESS, /* of a repository; one of this machine is judged where it is used */
	REMOTE,	 /* the name of one, "." or an address */
	ALIAS,	 /* of a subcommand that isn't called; git's own go first */
};
static const struct key {
	const char *section;
	enum subsection subsection;
	const char *keys; /* NULL: all */
	enum value value;
} table[] = {
	{ "core", WITHOUT,
		"repositoryformatversion filemode bare logallrefupdates ignorecase "
		"precomposeunicode "
		"symlinks autocrlf eol safecrlf quotepath compression loosecompression abbrev "
		"untrackedcache preloadindex bigfilethreshold whitespace checkstat trustctime "
		"sharedrepository excludesfile attributesfile commitgraph multipackindex "
		"warnambiguousrefs commentchar longpaths protectntfs protecthfs fscache "
		"hidedotfiles packedgitlimit packedgitwindowsize deltabasecachelimit fsync "
		"fsyncmethod fsyncobjectfiles filesreflocktimeout packedrefstimeout",
		ANY },
	{ "core", WITHOUT, "fsmonitor usebuiltinfsmonitor splitindex sparsecheckout", OFF },
	{ "core", WITHOUT, "pager", PAGER },
	{ "core", WITHOUT, "editor", EDITOR },
	{ "sequence", WITHOUT, "editor", EDITOR },
	{ "user", WITHOUT, "name email useconfigonly", ANY },
	{ "author", WITHOUT, "name email", ANY },
	{ "committer", WITHOUT, "name email", ANY },
	{ "init", WITHOUT, "defaultbranch", ANY },
	{ "remote", WITH, "url pushurl", ADDRESS },
	{ "remote", WITH,
		"fetch push tagopt prune prunetags mirror skipdefaultupdate skipfetchall "
		"gh-resolved promisor partialclonefilter",
		ANY },
	{ "remote", WITHOUT, "pushdefault", REMOTE },
	{ "branch", WITH, "remote pushremote", REMOTE },
	{ "branch", WITH,
		"merge rebase description vscode-merge-base gh-merge-base "
		"github-pr-owner-number",
		ANY },
	{ "branch", WITHOUT, "autosetupmerge autosetuprebase sort", ANY },
	{ "pull", WITHOUT, "rebase ff", ANY },
	{ "push", WITHOUT, "default autosetupremote followtags", ANY },
	{ "fetch", WITHOUT, "prune prunetags parallel writecommitgraph output", ANY },
	{ "merge", WITHOUT, "conflictstyle ff renames renamelimit log stat autostash", ANY },
	{ "rebase", WITHOUT,
		"autosquash autostash stat updaterefs missingcommitscheck reschedulefailedexec "
		"abbreviatecommands",
		ANY },
	{ "rerere", WITHOUT, "enabled autoupdate", ANY },
	{ "diff", WITHOUT,
		"algorithm renames renamelimit colormoved colormovedws mnemonicprefix noprefix "
		"context indentheuristic interhunkcontext statgraphwidth relative "
		"wserrorhighlight suppressblankempty wordregex autorefreshindex ignoresubmodules",
		ANY },
	{ "color", EITHER, NULL, ANY },
	{ "advice", WITHOUT, NULL, ANY },
	{ "column", WITHOUT, NULL, ANY },
	{ "status", WITHOUT,
		"short branch showstash showuntrackedfiles relativepaths renames renamelimit "
		"aheadbehind displaycommentprefix",
		ANY },
	{ "log", WITHOUT,
		"date decorate abbrevcommit follow mailmap showroot initialdecorationset "
		"graphcolors",
		ANY },
	{ "log", WITHOUT, "showsignature", OFF },
	{ "commit", WITHOUT, "verbose cleanup status", ANY },
	{ "commit", WITHOUT, "gpgsign", OFF },
	{ "tag", WITHOUT, "sort", ANY },
	{ "tag", WITHOUT, "gpgsign forcesignannotated", OFF },
	{ "push", WITHOUT, "gpgsign", OFF },
	{ "gc", WITHOUT,
		"auto autopacklimit autodetach pruneexpire worktreepruneexpire reflogexpire "
		"reflogexpireunreachable",
		ANY },
	{ "maintenance", WITHOUT, "auto strategy", ANY },
	{ "pack", WITHOUT, "threads window depth windowmemory deltacachesize compression", ANY },
	{ "index", WITHOUT, "version threads skiphash", ANY },
	{ "index", WITHOUT, "sparse", OFF },
	{ "feature", WITHOUT, "manyfiles", ANY },
	{ "http", EITHER, "postbuffer version lowspeedlimit lowspeedtime extraheader", ANY },
	{ "credential", EITHER, "username usehttppath", ANY },
	{ "credential", EITHER, "helper", PAGER }, /* "" forgets those before it */
	{ "safe", WITHOUT, "directory barerepository", ANY },
	{ "extensions", WITHOUT,
		"objectformat refstorage worktreeconfig relativeworktrees preciousobjects noop "
		"partialclone",
		ANY },
	{ "submodule", WITH, "active url", ANY },
	{ "submodule", WITHOUT, "recurse", OFF },
	{ "receive", WITHOUT, "denycurrentbranch denynonfastforwards denydeletes", ANY },
	{ "transfer", WITHOUT, "fsckobjects hiderefs unpacklimit", ANY },
	{ "uploadpack", WITHOUT, "allowfilter allowanysha1inwant", ANY },
	{ "protocol", WITHOUT, "version", ANY },
	{ "worktree", WITHOUT, "guessremote", ANY },
	{ "checkout", WITHOUT, "defaultremote guess workers", ANY },
	{ "clone", WITHOUT, "defaultremotename", ANY },
	{ "stash", WITHOUT, "showpatch showstat showincludeuntracked", ANY },
	{ "grep", WITHOUT, "linenumber column patterntype extendedregexp threads fullname", ANY },
	{ "alias", WITHOUT, NULL, ALIAS },
};

bool git_address_is_far(const char *address)
{
	static const char *const schemes[] = { "https://", "http://", "ssh://", "git://" };
	const char *colon = strchr(address, ':'), *slash = strchr(address, '/');
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
		if (strncmp(address, schemes[i], strlen(schemes[i])) == 0)
			return address[strlen(schemes[i])] != '-';
	/* host:path */
	return colon && colon > address && colon[1] != ':' && !strstr(address, "://") &&
	       (!slash || slash > colon) && address[0] != '-';
}

/* A path of this machine, without a program that reaches it. */
static bool is_path(const char *address)
{
	return !strstr(address, "::") && address[0] != '-' &&
	       (strncmp(address, "file://", 7) == 0 || !strstr(address, "://"));
}

static bool value_is_harmless(enum value kind, const struct git_entry *entry, const char *verb)
{
	static const char off[] = "false no off 0";
	const char *value = entry->value;
	switch (kind) {
	case ANY:
		return true;
	case OFF:
		return words_have(off, value);
	case PAGER:
		return !value[0] ||
		       (strcmp(entry->section, "core") == 0 && strcmp(value, "cat") == 0);
	case EDITOR:
		return strcmp(value, ":") == 0;
	case ADDRESS:
		return git_address_is_far(value) || is_path(value);
	case REMOTE:
		return git_address_is_far(value) || strcmp(value, ".") == 0 ||
		       (!strpbrk(value, "/:") && value[0] != '-' && strcmp(value, "..") != 0);
	case ALIAS:
		return strcmp(entry->key, verb) != 0;
	}
	return false;
}

bool git_key_is_harmless(const struct git_entry *entry, const char *verb)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct key *key = &table[i];
		if (strcmp(key->section, entry->section) == 0 &&
			(key->subsection == EITHER ||
				(key->subsection == WITH) == (entry->subsection[0] != '\0')) &&
			(!key->keys || words_have(key->keys, entry->key)))
			return value_is_harmless(key->value, entry, verb);
	}
	return false;
}
