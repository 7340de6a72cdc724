/* The known shapes of programs; those of git are in shape_git.c. */
#include "policy/shape_rows.h"

#define GNU " help version"
#define COPY                                                                                       \
	"a|archive b backup? d f|force i|interactive? l|link L|dereference n|no-clobber "          \
	"P|no-dereference p preserve? no-preserve= parents R|r|recursive reflink? "                \
	"remove-destination sparse= strip-trailing-slashes s|symbolic-link S|suffix=i "            \
	"t|target-directory=T T|no-target-directory u|update? v|verbose x|one-file-system Z "      \
	"attributes-only copy-contents H" GNU
#define PACK                                                                                       \
	"1 2 3 4 5 6 7 8 9 fast best c|stdout|to-stdout,R d|decompress|uncompress f|force "        \
	"k|keep l|list,R n|no-name N|name q|quiet r|recursive t|test,R v|verbose V T|threads= "    \
	"e|extreme F|format= z|compress L license rm" GNU

const struct shape shape_rows[] = {
	/* Programs that run the command in their operands */
	{ "env",
		"i|ignore-environment 0|null u|unset= C|chdir=C S|split-string=S v|debug a|argv0=! "
		"block-signal? default-signal? ignore-signal? list-signal-handling" GNU,
		"=>", SHAPE_FIRST },
	{ "nohup", GNU, ">", SHAPE_FIRST },
	{ "timeout", "s|signal= k|kill-after= foreground preserve-status v|verbose" GNU, "->",
		SHAPE_FIRST },
	{ "nice", "n|adjustment= NUM" GNU, ">", SHAPE_FIRST },
	{ "ionice", "c|class= n|classdata= p|pid= P|pgid= u|uid= t|ignore" GNU, ">", SHAPE_FIRST },
	{ "time", "a|append f|format= o|output=w p|portability q|quiet v|verbose" GNU, "=>",
		SHAPE_FIRST },
	{ "command", "p v,n V,n", ">", SHAPE_FIRST },
	{ "builtin", "", ">", SHAPE_FIRST },
	{ "exec", "a=! c l", ">", SHAPE_FIRST },
	{ "setsid", "c|ctty f|fork w|wait" GNU, ">", SHAPE_FIRST },
	{ "stdbuf", "i|input= o|output= e|error=" GNU, ">", SHAPE_FIRST },
	{ "xargs",
		"0|null a|arg-file=r d|delimiter= E= e|eof? I=I i|replace?I L= l|max-lines? "
		"n|max-args= o|open-tty P|max-procs= p|interactive process-slot-var=! "
		"r|no-run-if-empty s|max-chars= t|verbose x|exit show-limits" GNU,
		">+", SHAPE_FIRST },
	{ "sudo", "n|non-interactive E,! H|set-home S|stdin u|user= g|group= k b|background", "=>",
		SHAPE_FIRST },
	{ "doas", "n u=", ">", SHAPE_FIRST },
	{ "pkexec", "u|user= disable-internal-agent", ">", SHAPE_FIRST },
	{ "busybox toybox", "", ">", SHAPE_FIRST },
	{ "taskset", "a|all-tasks c|cpu-list" GNU, "->", SHAPE_FIRST },
	{ "chrt",
		"a|all-tasks b|batch d|deadline f|fifo i|idle o|other r|rr R|reset-on-fork "
		"v|verbose T|sched-runtime= P|sched-period= D|sched-deadline=" GNU,
		"->", SHAPE_FIRST },
	{ "flock",
		"s|shared x|e|exclusive u|unlock n|nb|nonblock w|wait|timeout= "
		"E|conflict-exit-code= o|close F|no-fork verbose c|command=s" GNU,
		"w>", SHAPE_FIRST },
	{ "setpriv fakeroot eatmydata unbuffer torsocks dbus-run-session catchsegv", GNU, ">",
		SHAPE_FIRST },
	{ "faketime", "f" GNU, "->", SHAPE_FIRST },

	/* Programs with a program in their operands */
	{ "sed gsed",
		"n|quiet|silent e|expression=p f|file=! i|in-place?i E|r|regexp-extended "
		"l|line-length= s|separate u|unbuffered z|null-data posix debug sandbox "
		"follow-symlinks" GNU,
		"p", SHAPE_MIXED },
	{ "awk gawk mawk nawk original-awk bwk", "F|field-separator= v|assign=" GNU, "p",
		SHAPE_FIRST },
	{ "find gfind",
		"a and o or not amin: anewer:r atime: cmin: cnewer:r ctime: empty executable false "
		"fstype: gid: group: ilname: iname: inum: ipath: iregex: iwholename: links: lname: "
		"mmin: mtime: name: newer:r newermt: newerat: newerct: newermm:r nogroup nouser "
		"path: perm: readable regex: samefile:r size: true type: uid: used: user: "
		"wholename: writable xtype: d depth daystart follow ignore_readdir_race "
		"noignore_readdir_race maxdepth: mindepth: mount noleaf regextype: warn nowarn "
		"xdev print print0 printf: ls prune quit help version",
		"", SHAPE_FIND },
	{ "fd fdfind",
		"H|hidden I|no-ignore u|unrestricted s|case-sensitive i|ignore-case g|glob regex "
		"F|fixed-strings and= a|absolute-path L|follow p|full-path d|max-depth= min-depth= "
		"exact-depth= t|type= e|extension= E|exclude= S|size= changed-within= "
		"changed-before= o|owner= c|color= j|threads= 0|print0 1 q|quiet max-results= "
		"no-ignore-vcs no-ignore-parent one-file-system prune strip-cwd-prefix "
		"base-directory=C x|exec,X X|exec-batch,X batch-size= show-errors" GNU,
		"-*r", SHAPE_MIXED },
	{ "rg",
		"n|line-number N|no-line-number i|ignore-case S|smart-case s|case-sensitive "
		"w|word-regexp x|line-regexp l|files-with-matches files-without-match c|count "
		"count-matches o|only-matching v|invert-match F|fixed-strings e|regexp= f|file=r "
		"g|glob= iglob= t|type= T|type-not= A|after-context= B|before-context= C|context= "
		"m|max-count= U|multiline multiline-dotall P|pcre2 hidden . no-hidden "
		"u|unrestricted "
		"L|follow files json color= colors= column heading no-heading H|with-filename "
		"I|no-filename d|max-depth= r|replace= 0|null q|quiet sort= sortr= stats p|pretty "
		"a|text j|threads= passthru M|max-columns= trim vimgrep debug encoding= E= crlf "
		"no-ignore no-ignore-vcs no-messages no-config context-separator= type-list "
		"glob-case-insensitive max-filesize= line-buffered b|byte-offset" GNU,
		"", SHAPE_MIXED },

	/* Programs that write files */
	{ "sort gsort",
		"b|ignore-leading-blanks c|check? C d|dictionary-order f|ignore-case "
		"g|general-numeric-sort h|human-numeric-sort i|ignore-nonprinting k|key= m|merge "
		"M|month-sort n|numeric-sort o|output=w parallel= r|reverse R|random-sort s|stable "
		"S|buffer-size= t|field-separator= u|unique V|version-sort z|zero-terminated "
		"sort= batch-size= debug" GNU,
		"", SHAPE_MIXED },
	{ "tee", "a|append i|ignore-interrupts p output-error?" GNU, "", SHAPE_MIXED },
	{ "cp", COPY, "", SHAPE_MIXED },
	{ "mv", COPY, "", SHAPE_MIXED },
	{ "ln", "r|relative F " COPY, "", SHAPE_MIXED },
	{ "install",
		"b backup? C|compare d|directory,V D g|group= m|mode= o|owner= "
		"p|preserve-timestamps s|strip S|suffix=i t|target-directory=T "
		"T|no-target-directory v|verbose Z" GNU,
		"", SHAPE_MIXED },
	{ "touch", "a c|no-create d|date= f h|no-dereference m r|reference=r t= time=" GNU, "",
		SHAPE_MIXED },
	{ "truncate", "c|no-create o|io-blocks r|reference=r s|size=" GNU, "", SHAPE_MIXED },
	{ "mkdir", "m|mode= p|parents v|verbose Z" GNU, "", SHAPE_MIXED },
	{ "split",
		"a|suffix-length= additional-suffix=i b|bytes= C|line-bytes= d numeric-suffixes? x "
		"hex-suffixes? e|elide-empty-files l|lines= n|number= t|separator= u|unbuffered "
		"verbose NUM" GNU,
		".rw", SHAPE_MIXED },
	{ "csplit",
		"b|suffix-format=i f|prefix=w k|keep-files n|digits= q|s|quiet|silent "
		"z|elide-empty-files suppress-matched" GNU,
		".r*-", SHAPE_MIXED },
	{ "shuf", "e|echo i|input-range= n|head-count= o|output=w r|repeat z|zero-terminated" GNU,
		"*r", SHAPE_MIXED },
	{ "iconv", "f|from-code= t|to-code= l|list c s|silent o|output=w verbose" GNU, "*r",
		SHAPE_MIXED },
	{ "wc", "c|bytes m|chars l|lines L|max-line-length w|words total=" GNU, "", SHAPE_MIXED },
	{ "du",
		"0|null a|all apparent-size B|block-size= b|bytes c|total D|H|dereference-args "
		"d|max-depth= h|human-readable inodes k L|dereference l|count-links m "
		"P|no-dereference S|separate-dirs s|summarize si t|threshold= time? time-style= "
		"exclude= x|one-file-system X|exclude-from=r" GNU,
		"", SHAPE_MIXED },
	{ "tree",
		"a d l f x L: P: I: matchdirs ignore-case noreport charset= filelimit= q N Q p u "
		"g "
		"s h D F v t c U r i A S n C J X o:w dirsfirst gitignore prune du si timefmt= "
		"sort? "
		"inodes device metafirst" GNU,
		"", SHAPE_MIXED },
	{ "diff gdiff",
		"a|text b|ignore-space-change B|ignore-blank-lines c C|context= "
		"d|minimal D|ifdef= e|ed E|ignore-tab-expansion F|show-function-line= "
		"i|ignore-case I|ignore-matching-lines= L|label= N|new-file p|show-c-function "
		"q|brief r|recursive s|report-identical-files strip-trailing-cr "
		"suppress-common-lines t|expand-tabs T|initial-tab u unified? U= v "
		"w|ignore-all-space W|width= x|exclude= X|exclude-from=r y|side-by-side "
		"Z|ignore-trailing-space color? no-dereference normal left-column NUM n|rcs "
		"speed-large-files S|starting-file= tabsize=" GNU,
		"", SHAPE_MIXED },
	{ "date",
		"d|date= f|file=r I|iso-8601? R|rfc-email|rfc-2822 rfc-3339= r|reference= u|utc "
		"universal debug" GNU,
		"-", SHAPE_MIXED },
	{ "file",
		"b|brief i|mime mime-type mime-encoding k|keep-going L|dereference "
		"h|no-dereference N|no-pad n|no-buffer 0|print0 r|raw s|special-files e|exclude= "
		"F|separator= f|files-from=! P|parameter= extension E l|list v" GNU,
		"", SHAPE_MIXED },
	{ "printf", GNU, "%*-", SHAPE_FIRST },
	/* Values of less may be followed by more options in the same word. */
	{ "less",
		"a c d e E f F g G i I J K L m M n N q Q r R s S u U w W X RAW-CONTROL-CHARS "
		"quit-if-one-screen chop-long-lines no-init LINE-NUMBERS ignore-case "
		"raw-control-chars" GNU,
		"*l", SHAPE_MIXED },
	{ "man",
		"a|all k|apropos f|whatis w|where|path|location K|global-apropos l|local-file i I "
		"M|manpath=! s|S|sections= L|locale= 7 no-hyphenation no-justification u" GNU,
		"*-", SHAPE_MIXED },
	{ "dd",
		"if=r of=w bs= count= skip= seek= conv= status= ibs= obs= cbs= iflag= oflag= "
		"iseek= oseek=",
		"*!", SHAPE_PAIRS },
	{ "xxd", "a b c= C d E e g= h i l= len= n= o= p|ps|plain r s|seek= u v R=", "rw",
		SHAPE_DASH },
	{ "patch",
		"p|strip= i|input=r d|directory=C R|reverse N|forward s|quiet|silent dry-run "
		"o|output=w r|reject-file=w E|remove-empty-files u|unified c n|normal l t|batch "
		"f|force F|fuzz= b|backup verbose binary g= merge? V= z|suffix=i" GNU,
		".br", SHAPE_MIXED },

	/* Archives */
	{ "tar gtar",
		"A|catenate|concatenate,m c|create,m d|diff|compare,t delete,m r|append,m t|list,t "
		"u|update,m x|extract|get,x f|file=A C|directory=D v|verbose z|gzip|gunzip "
		"j|bzip2 J|xz lzma lzip lzop zstd Z|compress a|auto-compress no-auto-compress "
		"k|keep-old-files keep-newer-files overwrite skip-old-files O|to-stdout "
		"p|preserve-permissions|same-permissions m|touch o|no-same-owner same-owner "
		"no-same-permissions numeric-owner h|dereference hard-dereference "
		"l|check-links s|preserve-order|same-order S|sparse X|exclude-from=r exclude= "
		"exclude-vcs exclude-vcs-ignores exclude-caches exclude-backups exclude-hidden "
		"strip-components= one-top-level transform|xform= owner= group= mtime= mode= sort= "
		"clamp-mtime H|format= pax-option= no-recursion recursion wildcards no-wildcards "
		"wildcards-match-slash anchored no-anchored ignore-case w|interactive|confirmation "
		"W|verify totals ignore-failed-read ignore-zeros i b|blocking-factor= B "
		"record-size= g|listed-incremental=w G|incremental R|block-number U|unlink-first "
		"recursive-unlink one-file-system newer-mtime= N|newer|after-date= null "
		"full-time show-transformed-names show-omitted-dirs remove-files,! no-unquote "
		"unquote quoting-style= warning= posix xattrs acls selinux force-local utc "
		"label= V= backup? suffix=i occurrence? starting-file= K= checkpoint? "
		"delay-directory-restore" GNU,
		"", SHAPE_TAR },
	/* -W and -H are others than those of GNU tar. */
	{ "bsdtar",
		"c|create,m r|append,m u|update,m t|list,t x|extract|get,x f|file=A "
		"C|cd|directory=D "
		"v|verbose z|gzip|gunzip|uncompress j|bzip2|bunzip2 J|xz lzma zstd "
		"k|keep-old-files "
		"O|to-stdout p|preserve-permissions|same-permissions m L|dereference h l n o "
		"exclude= include= strip-components= format= numeric-owner no-same-owner "
		"totals" GNU,
		"", SHAPE_TAR },
	{ "gzip gunzip bzip2 bunzip2 xz unxz lzma unlzma compress uncompress", "S|suffix=i " PACK,
		"*d", SHAPE_MIXED },
	{ "zstd unzstd zstdmt", "NUM o=w D=r ultra long? adapt progress " PACK, "*d", SHAPE_MIXED },
	{ "zip", "r|recurse-paths q|quiet j|junk-paths v u y|symlinks o D 0 1 2 3 4 5 6 7 8 9 x=",
		"w*E", SHAPE_MIXED },
	{ "unzip", "o n q j a L C V Z1,h l,h t,h v,h p,h z,h d=O x= u f X K", ".r*-", SHAPE_MIXED },

	/* Programs that fetch */
	{ "curl",
		"s|silent S|show-error L|location f|fail fail-with-body fail-early I|head "
		"i|include|show-headers v|verbose k|insecure X|request= H|header=@ d|data=@ "
		"data-ascii=@ data-raw= data-urlencode=N data-binary=@ json=@ F|form=F "
		"form-string= "
		"u|user= A|user-agent= e|referer= o|output=W O|remote-name,. output-dir=O "
		"create-dirs J|remote-header-name R|remote-time m|max-time= connect-timeout= "
		"retry= "
		"retry-delay= retry-max-time= retry-all-errors retry-connrefused x|proxy= "
		"noproxy= w|write-out=% b|cookie=r c|cookie-jar=w D|dump-header=w T|upload-file=u "
		"g|globoff G|get compressed 0|http1.0 http1.1 http2 http2-prior-knowledge http3 "
		"4|ipv4 6|ipv6 N|no-buffer #|progress-bar progress-meter cacert=r E|cert=r key=r "
		"pass= oauth2-bearer= resolve= connect-to= stderr=w trace=w trace-ascii=w "
		"etag-save=w etag-compare=r C|continue-at= z|time-cond= r|range= "
		"tlsv1.2 tlsv1.3 1 2 max-redirs= location-trusted post301 post302 post303 "
		"path-as-is Z|parallel parallel-max= limit-rate= max-filesize= url=f "
		"interface= keepalive-time= remove-on-error V|version "
		"h|help q|disable n|netrc anyauth basic digest styled-output",
		"*f", SHAPE_NEGATED },
	{ "wget",
		"q|quiet n= nv|no-verbose v|verbose O|output-document=W P|directory-prefix=O "
		"o|output-file=w a|append-output=w c|continue r|recursive l|level= "
		"p|page-requisites k|convert-links E|adjust-extension N|timestamping "
		"S|server-response T|timeout= t|tries= U|user-agent= header= referer= "
		"i|input-file=r "
		"post-data= post-file=r body-data= body-file=r method= user= password= "
		"check-certificate proxy cookies cache spider,h show-progress progress= "
		"content-disposition w|wait= random-wait waitretry= retry-connrefused A|accept= "
		"R|reject= D|domains= I|include-directories= X|exclude-directories= m|mirror "
		"L|relative H|span-hosts np|no-parent nc|no-clobber nd|no-directories parent "
		"directories host-directories cut-dirs= limit-rate= max-redirect= 4|inet4-only "
		"6|inet6-only ca-certificate=r load-cookies=r save-cookies=w V|version h|help "
		"read-timeout= connect-timeout= dns-timeout= compression= clobber verbose "
		"hsts b|background d|debug secure-protocol= https-only B|base= Q|quota=",
		".*-", SHAPE_NEGATED },
	{ "rsync",
		"a|archive v|verbose r|recursive R|relative u|update l|links L|copy-links p|perms "
		"t|times g|group o|owner D z|compress P h|human-readable n|dry-run c|checksum "
		"x|one-file-system q|quiet i|itemize-changes S|sparse H|hard-links A|acls X|xattrs "
		"b|backup W|whole-file O|omit-dir-times k|copy-dirlinks K|keep-dirlinks J d|dirs "
		"I|ignore-times s|protect-args m|prune-empty-dirs C|cvs-exclude stats progress "
		"partial inplace append append-verify delete,Y del,Y delete-after,Y "
		"delete-before,Y "
		"delete-during,Y delete-delay,Y delete-excluded,Y exclude= include= exclude-from=r "
		"include-from=r files-from=r max-size= min-size= bwlimit= timeout= numeric-ids "
		"size-only existing ignore-existing ignore-errors backup-dir=w suffix=i log-file=w "
		"T|temp-dir=w compare-dest=r copy-dest=r link-dest=r info= chmod= chown= mkpath "
		"out-format= list-only safe-links specials devices modify-window= E|executability "
		"force 0|from0 fuzzy y implied-dirs bwlimit= contimeout= 4|ipv4 6|ipv6" GNU,
		":*E$O", SHAPE_NEGATED },
	{ "scp", "3 4 6 A,! B C p q r v l= P= c= i=r", ":*E$O", SHAPE_MIXED },
	{ "sftp", "4 6 a C f p q r v B= b=! c= i=r l= P= R=", "*!", SHAPE_MIXED },
	{ "tcpdump", "c= i= n q v e t A x X S l U D nn vv vvv ttt s= r=r w=w F=r host= port=", "*-",
		SHAPE_MIXED },

	/* Compilers and builders */
	{ "gcc cc g++ c++ c89 c99 clang clang++ gfortran",
		"c S E,h v o=W O? g g0 g1 g2 g3 ggdb ggdb3 gdwarf-4 gdwarf-5 gsplit-dwarf I= D= U= "
		"L= "
		"l= W?c march= mtune= mcpu= m32 m64 mavx mavx2 mfma msse msse2 msse4.2 "
		"mno-red-zone "
		"mcmodel= mabi= mfpu= mfloat-abi= std= x= w ansi pedantic pedantic-errors "
		"pipe pthread static shared rdynamic nostdlib nostdinc nodefaultlibs nostartfiles "
		"pie no-pie static-pie s include=r imacros=r isystem= iquote= idirafter= M,h MM,h "
		"MD MMD MP MG MF=w MT= MQ= P C z= u= fPIC fpic fPIE fpie fopenmp fsyntax-only,h "
		"fsanitize= fno-sanitize-recover fsanitize-recover? fvisibility= "
		"fdiagnostics-color? fcolor-diagnostics fno-diagnostics-color "
		"fstack-protector fstack-protector-strong fstack-protector-all "
		"fno-stack-protector fomit-frame-pointer fno-omit-frame-pointer ffast-math "
		"fwrapv fno-strict-aliasing fstrict-aliasing funroll-loops fcommon fno-common "
		"ffunction-sections fdata-sections flto? fno-lto fexceptions fno-exceptions "
		"fno-rtti ffreestanding fno-builtin fcf-protection? fmax-errors= ftrapv "
		"fanalyzer fno-plt fshort-enums pg coverage fsigned-char funsigned-char fno-inline "
		"fvisibility-inlines-hidden ftree-vectorize fpermissive print-file-name= "
		"print-search-dirs print-libgcc-file-name print-multiarch dumpversion "
		"dumpmachine dumpfullversion param= help? version,h",
		".*k", SHAPE_DASH },
	{ "as", "o=W g 32 64 I= W", ".*k", SHAPE_DASH },
	{ "ar", "r c s t,h x p,h q d u v D U S o", ".b*k", SHAPE_TAR },
	{ "strip",
		"s|strip-all g|S|d|strip-debug strip-unneeded x|discard-all o=W v "
		"p|preserve-dates" GNU,
		"*K", SHAPE_MIXED },
	{ "make gmake",
		"B|always-make C|directory=C d f|file|makefile=M i|ignore-errors j|jobs? "
		"k|keep-going "
		"l|load-average? n|just-print|dry-run|recon o|old-file= O|output-sync? "
		"p|print-data-base "
		"q|question r|no-builtin-rules R|no-builtin-variables s|silent|quiet S|stop "
		"t|touch "
		"trace W|what-if|new-file= w|print-directory no-print-directory b m "
		"warn-undefined-variables I|include-dir= h|help v|version NUM",
		"*v", SHAPE_MIXED },
	{ "go", "C=C", "/", SHAPE_FIRST },
	{ "go/build go/install go/vet go/list go/test",
		"a n p= race msan cover covermode= coverpkg= v work x asmflags=! buildvcs? o=w "
		"json "
		"m u e f= deps find mod= modfile=! tags= trimpath short count= run= bench= "
		"benchtime= "
		"benchmem timeout= parallel= cpu= failfast list= c i shuffle= skip= fuzz= "
		"fuzztime= "
		"coverprofile=w cpuprofile=w memprofile=w blockprofile=w mutexprofile=w trace=w "
		"outputdir=w test export ldflags=!",
		"*-", SHAPE_DASH },
	{ "go/run", "race v x tags= mod= trimpath", ">", SHAPE_DASH },
	{ "go/fmt go/doc go/version go/help go/clean go/get go/mod",
		"n x v json cache testcache modcache t u all src short go= e m", "*-", SHAPE_DASH },
	{ "venv virtualenv",
		"system-site-packages symlinks copies clear upgrade without-pip prompt= "
		"upgrade-deps p|python=! q|quiet seeder= no-download v|verbose h",
		"*w", SHAPE_MIXED },
};
const size_t shape_row_count = sizeof shape_rows / sizeof *shape_rows;
