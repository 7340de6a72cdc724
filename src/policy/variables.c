/* Variables that change which program runs, what it does, or which are evaluated when they are set.
 */
#include "policy/internal.h"

/* Values that bash takes for arithmetic when they are assigned, which runs a[$(…)]. */
#define INTEGERS                                                                                   \
	"RANDOM SRANDOM SECONDS LINENO HISTCMD OPTIND EPOCHSECONDS EPOCHREALTIME BASHPID PPID "    \
	"UID EUID SHLVL "
#define PROGRAMS                                                                                   \
	"BROWSER SHELL CC CXX CPP LD AR AS NM RANLIB STRIP OBJCOPY OBJDUMP FC F77 CCLD LEX YACC "  \
	"LINKER AWK SED GREP MAKE RUSTC FCEDIT VISUAL PKG_CONFIG INSTALL RM CP MV CO GET PC M2C "  \
	"LINT MAKEINFO TEX TEXI2DVI WEAVE CWEAVE TANGLE CTANGLE "
/* What make's own rules have beside programs and *FLAGS. */
#define MAKES "TARGET_ARCH LDLIBS LOADLIBES OUTPUT_OPTION "
#define SEARCHED                                                                                   \
	"PATH CDPATH FPATH MANPATH INFOPATH CPATH COMPILER_PATH LIBRARY_PATH C_INCLUDE_PATH "      \
	"CPLUS_INCLUDE_PATH OBJC_INCLUDE_PATH NODE_PATH CLASSPATH GEM_HOME GEM_PATH RUBYLIB "      \
	"NLSPATH LOCPATH TZDIR TERMINFO TERMINFO_DIRS TERMCAP GCONV_PATH AWKPATH AWKLIBPATH "      \
	"JAVA_HOME VIRTUAL_ENV HOME TMPDIR ZDOTDIR CURL_HOME PKG_CONFIG_PATH PKG_CONFIG_LIBDIR "   \
	"OPENSSL_MODULES OPENSSL_ENGINES GUILE_LOAD_PATH EMACSLOADPATH TCLLIBPATH "
#define SHELLS                                                                                     \
	"IFS ENV SHELLOPTS GLOBIGNORE FIGNORE PROMPT_COMMAND POSIXLY_CORRECT EXECIGNORE HISTFILE " \
	"INPUTRC TMOUT MAIL MAILPATH LANG LANGUAGE "
#define CONFIGURED                                                                                 \
	"NODE_OPTIONS NODE_EXTRA_CA_CERTS NODE_REPL_EXTERNAL_MODULE JAVA_TOOL_OPTIONS "            \
	"_JAVA_OPTIONS JDK_JAVA_OPTIONS MAVEN_ARGS ANT_ARGS "                                      \
	"NODE_V8_COVERAGE NODE_REDIRECT_WARNINGS NODE_COMPILE_CACHE SSLKEYLOGFILE PHPRC "          \
	"PHP_INI_SCAN_DIR GHCRTS SCREENRC PSQLRC RUBYOPT MORE TAR_OPTIONS TAPE RSYNC_RSH "         \
	"RSYNC_CONNECT_PROG CVS_RSH SVN_SSH GREP_OPTIONS GZIP BZIP BZIP2 XZ_OPT XZ_DEFAULTS "      \
	"UNZIP UNZIPOPT ZIP ZIPOPT ZIPINFO MAKEFLAGS MFLAGS GNUMAKEFLAGS MAKEFILES MAKEOVERRIDES " \
	"OPENSSL_CONF HOSTALIASES RES_OPTIONS LOCALDOMAIN WGETRC SYSTEM_WGETRC NETRC KUBECONFIG "  \
	"SUDO_ASKPASS MAGIC EXINIT VIMINIT DEPENDENCIES_OUTPUT SUNPRO_DEPENDENCIES MANROFFSEQ "    \
	"MANOPT MANLESS VALGRIND_LIB FZF_DEFAULT_COMMAND LS_OPTIONS JAVACMD GRADLE_USER_HOME "     \
	"GNUPGHOME BC_ENV_ARGS DC_ENV_ARGS PATCH_GET NMAPDIR AWS_SHARED_CREDENTIALS_FILE "         \
	"NO_PROXY no_proxy ALL_PROXY HTTP_PROXY HTTPS_PROXY FTP_PROXY http_proxy https_proxy "     \
	"ftp_proxy all_proxy APT_CONFIG PYLINTRC PYLINTHOME QUILTRC GEMRC IRBRC SVN_MERGE "        \
	"shell_escape openout_any openin_any MIX_EXS MIX_HOME MIX_ARCHIVES MYPYPATH "              \
	"CHROME_PATH RPM_CONFIGDIR "
#define PREFIXES                                                                                   \
	"LD_ DYLD_ GIT_ PYTHON PERL BASH LC_ PS npm_config_ NPM_ PNPM_ YARN_ BUN_ DENO_ PIP_ "     \
	"PIPENV_ POETRY_ PDM_ COREPACK_ UV_ SSH_ CARGO_ RUSTC_ RUSTUP_ GO CGO_ CONDA_ XDG_ "       \
	"DOCKER_ MALLOC_ GLIBC_ GTK_ QT_ GCC_ COLLECT_ RIPGREP_ CCACHE_ DISTCC_ CMAKE_ GAWK "      \
	"AWK LESS LUA_ ERL_ ELIXIR_ JULIA_ OCAML DOTNET_ CORECLR_ MONO_ R_ GROFF_ _PYTHON ASAN_ "  \
	"HG BZR_ BRZ_ P4 VIRTUALENV_ TOX_ COVERAGE_ JUPYTER IPYTHON RUBY GHC_ CABAL_ STACK_ "      \
	"TEXMF TEXINPUTS GIO_ GDAL_ SASL_ ALSA_ ODBC ESBUILD_ QUILT_ DPKG_ FAKEROOT NVM_ PYENV_ "  \
	"RBENV_ ASDF_ VOLTA_ "                                                                     \
	"KRB5_ GSS_ PYTEST_ ANSIBLE_ MAGICK_ BUNDLE_ TS_NODE_ PUPPETEER_ HELM_ TF_ "               \
	"UBSAN_ LSAN_ CLANG_ CCC_ LLVM_ MAKE_ RSYNC_ ZSTD_ BAT_ PAGER"
/* Endings of names that name programs, or options of one. */
#define ENDINGS                                                                                    \
	"PAGER EDITOR FLAGS _OPTIONS _COMMAND _PROGRAM _ASKPASS _WRAPPER _LAUNCHER _RSH _SHELL "   \
	"_OPTS _BROWSER _CONFIG_PATH _CONFIG_FILE _BINARY _BINARY_PATH _BIN _EXECUTABLE "          \
	"_EXECUTABLE_PATH _PLUGIN_PATH RCFILE"

bool variable_is_dangerous(const char *name)
{
	struct str rest, one;
	size_t len;
	if (!name)
		return true;
	if (words_have(INTEGERS PROGRAMS MAKES SEARCHED SHELLS CONFIGURED, name))
		return true;
	len = strlen(name);
	rest = STR(PREFIXES);
	while (str_next(&rest, ' ', &one))
		if (len >= one.len && memcmp(name, one.data, one.len) == 0)
			return true;
	rest = STR(ENDINGS);
	while (str_next(&rest, ' ', &one))
		if (len >= one.len && memcmp(name + len - one.len, one.data, one.len) == 0)
			return true;
	return false;
}
