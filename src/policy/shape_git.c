/* The known shapes of git and its subcommands: an option's --no-NAME is known with it. What takes
 * programs or another configuration isn't listed: -c, --exec-path, --upload-pack, --ext-diff … */
#include "policy/shape_rows.h"

#define DIFF                                                                                       \
	"p|patch|u s|no-patch U|unified= raw patch-with-raw patch-with-stat stat? numstat "        \
	"shortstat dirstat? X? cumulative summary name-only name-status color? word-diff? "        \
	"color-words? M|find-renames? C|find-copies? B|break-rewrites? D|irreversible-delete "     \
	"find-copies-harder l= diff-filter= S= G= pickaxe-all pickaxe-regex R relative? a|text "   \
	"ignore-cr-at-eol ignore-space-at-eol b|ignore-space-change w|ignore-all-space "           \
	"ignore-blank-lines I|ignore-matching-lines= inter-hunk-context= W|function-context "      \
	"exit-code quiet full-index binary abbrev? z minimal patience histogram diff-algorithm= "  \
	"anchored= src-prefix= dst-prefix= no-prefix default-prefix ignore-submodules? "           \
	"color-moved? color-moved-ws= ws-error-highlight= indent-heuristic "                       \
	"compact-summary cc c m combined-all-paths check rename-empty no-renames line-prefix= "    \
	"word-diff-regex= no-ext-diff no-textconv "
#define LOG                                                                                        \
	DIFF "NUM n|max-count= skip= since|after= until|before= author= committer= grep= "         \
	     "all-match invert-grep i|regexp-ignore-case E|extended-regexp F|fixed-strings "       \
	     "P|perl-regexp oneline graph decorate? decorate-refs= decorate-refs-exclude= all "    \
	     "branches? tags? remotes? glob= exclude= merges no-merges first-parent reverse "      \
	     "follow pretty? format= abbrev-commit date= parents children left-right left-only "   \
	     "right-only cherry-pick cherry-mark cherry topo-order date-order author-date-order "  \
	     "full-history simplify-merges simplify-by-decoration boundary L= g|walk-reflogs "     \
	     "source notes? show-notes? relative-date log-size no-walk? min-parents= "             \
	     "max-parents= count objects reflog ignore-missing t r q|quiet dense sparse "
#define FETCH                                                                                      \
	"v|verbose q|quiet progress a|append all f|force k|keep p|prune P|prune-tags t|tags "      \
	"n depth= deepen= shallow-since= shallow-exclude= unshallow update-shallow dry-run "       \
	"j|jobs= 4|ipv4 6|ipv6 u|update-head-ok refmap= o|server-option= set-upstream "            \
	"filter= atomic porcelain multiple auto-maintenance auto-gc write-fetch-head "             \
	"recurse-submodules? "
#define MERGE                                                                                      \
	"ff ff-only commit edit,j e,j no-edit,q stat n log? squash signoff v|verbose q|quiet "     \
	"progress "                                                                                \
	"X|strategy-option= allow-unrelated-histories m= F|file=r abort continue,j quit verify "   \
	"autostash cleanup= rerere-autoupdate summary "

const struct shape shape_git_rows[] = {
	{ "git",
		"C=C no-pager P bare literal-pathspecs glob-pathspecs noglob-pathspecs "
		"icase-pathspecs no-optional-locks no-replace-objects no-lazy-fetch v|version,n "
		"h|help,n",
		"/", SHAPE_FIRST },
	{ "git/status",
		"s|short b|branch show-stash porcelain? long v|verbose u|untracked-files? "
		"ignore-submodules? ignored? z column? ahead-behind renames find-renames?",
		"", SHAPE_NEGATED },
	{ "git/diff", LOG "staged|cached merge-base no-index,R 0 1 2 3|theirs ours base", "*o",
		SHAPE_NEGATED },
	{ "git/log git/show git/whatchanged git/rev-list git/diff-tree git/diff-index "
	  "git/diff-files git/range-diff git/reflog",
		LOG "cached root s n e header disk-usage objects-edge missing= use-bitmap-index "
		    "creation-factor= expire= expire-unreachable= dry-run group= w?",
		"", SHAPE_NEGATED },
	{ "git/shortlog",
		"s|summary n|numbered e|email c|committer group= w? all since= until= no-merges "
		"merges "
		"author= branches? tags? remotes? NUM max-count= format=",
		"", SHAPE_NEGATED },
	{ "git/blame git/annotate",
		"L= l t s e w b f|show-name n|show-number p|porcelain line-porcelain M? C? "
		"ignore-rev= ignore-revs-file=r date= abbrev= root since= incremental "
		"color-lines color-by-age progress score-debug show-stats show-email show-number",
		"", SHAPE_NEGATED },
	{ "git/add git/stage",
		"n|dry-run v|verbose i|interactive,j p|patch,j f|force u|update renormalize "
		"N|intent-to-add A|all ignore-removal refresh ignore-errors ignore-missing sparse "
		"chmod= pathspec-from-file=r pathspec-file-nul",
		"", SHAPE_NEGATED },
	{ "git/rm", "n|dry-run f|force r cached ignore-unmatch q|quiet sparse", "", SHAPE_NEGATED },
	{ "git/mv", "n|dry-run f|force k v|verbose sparse", "", SHAPE_NEGATED },
	{ "git/commit",
		"a|all p|patch,j C|reuse-message=q c|reedit-message=j fixup=Q squash= reset-author "
		"short,q branch porcelain,q long,q z,q F|file=G author= date= m|message=q "
		"s|signoff "
		"trailer= "
		"verify n allow-empty allow-empty-message cleanup= e|edit,j no-edit,q amend "
		"no-message,j no-file,j no-reuse-message,j no-fixup,j post-rewrite "
		"i|include "
		"o|only pathspec-from-file=r pathspec-file-nul u|untracked-files? v|verbose "
		"q|quiet dry-run,q status gpg-sign,!",
		"~", SHAPE_NEGATED },
	{ "git/checkout git/switch",
		"b= B= c|create= C|force-create= d|detach f|force g|guess l m|merge ours|2 "
		"theirs|3 "
		"conflict= orphan= p|patch,j q|quiet progress t|track? overlay recurse-submodules? "
		"ignore-skip-worktree-bits overwrite-ignore ignore-other-worktrees discard-changes "
		"pathspec-from-file=r pathspec-file-nul",
		"", SHAPE_NEGATED },
	{ "git/restore",
		"s|source= S|staged W|worktree p|patch,j q|quiet progress ours|2 theirs|3 m|merge "
		"conflict= overlay ignore-unmerged recurse-submodules? pathspec-from-file=r",
		"", SHAPE_NEGATED },
	{ "git/reset",
		"soft mixed hard merge keep q|quiet refresh p|patch,j N pathspec-from-file=r", "",
		SHAPE_NEGATED },
	{ "git/branch",
		"a|all r|remotes l|list v|verbose q|quiet d|delete D f|force m|move M c|copy C "
		"u|set-upstream-to= unset-upstream t|track? contains? merged? no-merged? "
		"no-contains? sort= points-at= format= column? abbrev? color? show-current "
		"i|ignore-case create-reflog edit-description,!",
		"", SHAPE_NEGATED },
	{ "git/tag",
		"a|annotate,J f|force d|delete l|list n? m|message=q F|file=G no-message,j "
		"no-file,j e,! cleanup= sort= "
		"contains? merged? no-merged? no-contains? points-at= format= column? color? "
		"i|ignore-case create-reflog",
		"", SHAPE_NEGATED },
	{ "git/stash",
		"p|patch,j k|keep-index q|quiet u|include-untracked a|all S|staged m|message= "
		"index "
		"stat? only-untracked pathspec-from-file=r",
		"", SHAPE_NEGATED },
	{ "git/clone",
		"l|local hardlinks s|shared q|quiet v|verbose progress n|no-checkout bare mirror "
		"o|origin= b|branch= single-branch depth= shallow-since= shallow-exclude= tags "
		"filter= also-filter-submodules j|jobs= recurse-submodules? recursive? "
		"shallow-submodules remote-submodules reference=r reference-if-able=r dissociate "
		"separate-git-dir=w sparse 4|ipv4 6|ipv6 server-option= reject-shallow",
		".gW", SHAPE_NEGATED },
	{ "git/init", "q|quiet bare b|initial-branch= object-format= separate-git-dir=w shared?",
		".W", SHAPE_NEGATED },
	{ "git/fetch", FETCH, "*g", SHAPE_NEGATED },
	{ "git/pull", FETCH MERGE "r|rebase?P", "*g", SHAPE_NEGATED },
	{ "git/push",
		"all|branches prune mirror n|dry-run porcelain d|delete tags follow-tags signed? "
		"atomic o|push-option= force-with-lease? force-if-includes f|force repo=g "
		"u|set-upstream thin q|quiet v|verbose progress recurse-submodules= verify "
		"4|ipv4 6|ipv6",
		"*g", SHAPE_NEGATED },
	{ "git/ls-remote",
		"h|heads|branches t|tags refs q|quiet exit-code get-url sort= symref "
		"o|server-option=",
		"*g", SHAPE_NEGATED },
	{ "git/remote", "v|verbose f t= m= tags mirror? p|prune q|query n a|all d|delete push add",
		"*g", SHAPE_NEGATED },
	{ "git/merge", MERGE, "", SHAPE_NEGATED },
	{ "git/rebase",
		"onto= keep-base continue,j abort skip,j quit edit-todo,j show-current-patch apply "
		"empty= m|merge q|quiet v|verbose stat n verify ff f|force-rebase fork-point "
		"ignore-whitespace whitespace= committer-date-is-author-date signoff "
		"i|interactive,j r|rebase-merges? root autosquash,j autostash "
		"reschedule-failed-exec "
		"update-refs X|strategy-option= ignore-date reapply-cherry-picks keep-empty",
		"", SHAPE_NEGATED },
	{ "git/cherry-pick git/revert",
		"e|edit,j no-edit,q x r m|mainline= n|no-commit s|signoff ff allow-empty "
		"allow-empty-message "
		"keep-redundant-commits X|strategy-option= continue,j skip abort quit cleanup= "
		"rerere-autoupdate reference",
		"", SHAPE_NEGATED },
	{ "git/grep",
		"cached untracked no-index,R exclude-standard recurse-submodules v|invert-match "
		"i|ignore-case w|word-regexp a|text I r|recursive max-depth= E|extended-regexp "
		"G|basic-regexp F|fixed-strings P|perl-regexp n|line-number column h H full-name "
		"l|files-with-matches|name-only L|files-without-match z|null o|only-matching "
		"c|count color? break heading p|show-function C|context= A|after-context= "
		"B|before-context= W|function-context f=r e= and or not all-match q|quiet "
		"m|max-count= threads= NUM",
		"*o", SHAPE_NEGATED },
	{ "git/ls-files",
		"c|cached d|deleted m|modified o|others i|ignored s|stage u|unmerged k|killed "
		"directory no-empty-directory z x|exclude= X|exclude-from=r exclude-standard "
		"error-unmatch full-name t v f eol deduplicate abbrev? recurse-submodules format=",
		"", SHAPE_NEGATED },
	{ "git/ls-tree",
		"d r t l|long z name-only|name-status object-only full-name full-tree abbrev? "
		"format=",
		"", SHAPE_NEGATED },
	{ "git/cat-file", "t s e p batch? batch-check? batch-all-objects", "", SHAPE_NEGATED },
	{ "git/rev-parse git/describe git/merge-base git/name-rev git/symbolic-ref git/show-ref "
	  "git/for-each-ref git/count-objects git/fsck git/gc git/prune git/check-ignore "
	  "git/check-attr git/verify-commit git/var git/cherry git/version "
	  "",
		"abbrev-ref? short? verify show-toplevel show-prefix show-cdup git-dir "
		"absolute-git-dir "
		"git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository "
		"is-shallow-repository q|quiet symbolic symbolic-full-name all branches? tags? "
		"remotes? heads always long dirty? broken? match= exclude= candidates= exact-match "
		"contains first-parent abbrev? a octopus independent is-ancestor fork-point "
		"name-only "
		"refs= head d|dereference hash? s t= w v|verbose n non-matching stdin no-index "
		"count= "
		"sort= format= points-at= merged? no-merged? python shell perl aggressive auto "
		"prune? now full strict unreachable dangling h|human-readable H l i",
		"", SHAPE_NEGATED },
	{ "git/hash-object", "w stdin t= filters", "*r", SHAPE_NEGATED },
	{ "git/archive",
		"format= l|list v|verbose prefix= o|output=w add-file=r worktree-attributes NUM",
		"*-", SHAPE_NEGATED },
	{ "git/format-patch",
		LOG "o|output-directory=O stdout N|no-numbered k|keep-subject s|signoff "
		    "start-number= v|reroll-count= subject-prefix= rfc cover-letter base= "
		    "numbered thread? to= cc= in-reply-to= suffix=i signature= zero-commit",
		"", SHAPE_NEGATED },
	{ "git/apply git/am",
		"stat numstat summary check index cached 3|3way build-fake-ancestor=w "
		"R|reverse reject z p= C= unidiff-zero apply allow-overlap inaccurate-eof "
		"v|verbose "
		"q|quiet recount directory=w whitespace= ignore-whitespace ignore-space-change "
		"exclude= include= N|intent-to-add s|signoff k|keep continue skip abort quit "
		"show-current-patch? keep-cr message-id",
		"*r", SHAPE_NEGATED },
	{ "git/clean", "d f|force i|interactive n|dry-run q|quiet e|exclude= x X", "",
		SHAPE_NEGATED },
};
const size_t shape_git_row_count = sizeof shape_git_rows / sizeof *shape_git_rows;
