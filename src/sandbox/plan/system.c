#include "sandbox/plan/system.h"

#include "base/path.h"

const char *const plan_system_paths[] = {
	"/usr",
	"/bin",
	"/sbin",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",
	"/etc/perl/XML",
	"/etc/pki/ca-trust/extracted",
	"/etc/pki/tls/certs",
	"/etc/pki/tls/openssl.cnf",
	"/etc/ssl/certs",
	"/etc/ssl/openssl.cnf",
	NULL,
};

/* Chosen from what the packages of Debian install here: configuration without which a program
 * fails or gives other results, and the targets of links in /usr. Each costs a mount (some 15 us)
 * where it exists, so entries that programs can do without are left out. Left out because they may
 * hold credentials: environment, freetds, gitconfig, jupyter, mercurial, mysql, npmrc, odbc.ini,
 * pip.conf, postgresql, redis, subversion, wgetrc. */
static const char *const of_etc[] = {
	"GNUstep",
	"ImageMagick-*",
	"OpenCL",
	"R",
	"a2ps*",
	"alternatives",
	"asciidoc",
	"chromium.d",
	"crypto-policies",
	"dictionaries-common", /* /usr/share/dict/words leads here */
	"dotnet",
	"emacs*",
	"enscript.cfg",
	"festival.scm",
	"firefox*",
	"fonts",
	"gimp",
	"gnucobol*",
	"groff",
	"java*",
	"jvm*",
	"ld.so.cache",
	"ldc2.conf",
	"libreoffice",
	"locale.alias",
	"localtime",
	"luarocks",
	"lynx",
	"mailcap",
	"manpath.config",
	"maven",
	"mecabrc",
	"mime.types",
	"mono",
	"nim",
	"ocamlfind.conf",
	"octave*",
	"openmpi",
	"os-release",
	"papersize",
	"php",
	"povray",
	"primer3_config",
	"sgml",
	"texmf",
	"timidity",
	"vulkan",
	"xml",
};

/* Data that packages compile or register at their installation, not what services store. */
static const char *const of_var_lib[] = {
	"aspell",
	"chicken",
	"coq",
	"dictionaries-common",
	"gems",
	"ghc",
	"ghostscript",
	"ieee-data",
	"ispell",
	"mecab",
	"ocaml",
	"sgml-base",
	"slib",
	"texmf",
	"units",
	"usbutils",
	"xkb",
};

/* Without the cache, every program with fonts scans all of them at its start. */
static const char *const of_var_cache[] = {
	"dictionaries-common",
	"fontconfig",
};

#define PLACE(directory, names)                                                                    \
	{                                                                                          \
		directory, names, sizeof(names) / sizeof *(names)                                  \
	}
const struct plan_system_place plan_system_places[] = {
	PLACE("/etc", of_etc),
	PLACE("/var/cache", of_var_cache),
	PLACE("/var/lib", of_var_lib),
	{ NULL, NULL, 0 },
};

/* The order of a name and a row: a row that is the whole of `name`, or a prefix of it where that
 * is enough, is equal. */
static int compare(const void *name, const void *row)
{
	const char *text = *(const char *const *)row;
	size_t len = strlen(text);
	return text[len - 1] == '*' ? strncmp(name, text, len - 1) : strcmp(name, text);
}

bool plan_system_place_has(const struct plan_system_place *place, const char *name)
{
	return bsearch(name, place->names, place->count, sizeof *place->names, compare) != NULL;
}

int plan_system_check_shown(const char *path, struct error *err)
{
	static const struct {
		const char *path, *is;
	} closed[] = {
#define OWN "part of the sandbox"
#define SECRET "a secret"
		{ "/proc", OWN },
		{ "/dev", OWN },
		{ "/sys", OWN },
		{ "/tmp", OWN },
		{ "/.cache", OWN },
		{ "/workspace", OWN },
		{ "/env", OWN },
		{ "/var/tmp", OWN },
		{ "/etc/group", OWN },
		{ "/etc/hostname", OWN },
		{ "/etc/hosts", OWN },
		{ "/etc/mtab", OWN },
		{ "/etc/nsswitch.conf", OWN },
		{ "/etc/passwd", OWN },
		{ "/etc/protocols", OWN },
		{ "/etc/resolv.conf", OWN },
		{ "/etc/services", OWN },
		{ "/etc/gshadow", SECRET },
		{ "/etc/gshadow-", SECRET },
		{ "/etc/krb5.keytab", SECRET },
		{ "/etc/shadow", SECRET },
		{ "/etc/shadow-", SECRET },
		{ "/etc/ssh", SECRET },
		{ "/etc/ssl/private", SECRET },
		{ "/etc/sudoers", SECRET },
		{ "/etc/sudoers.d", SECRET },
		{ "/root", SECRET },
		{ "/etc/machine-id", "the identity of this host" },
		{ "/run", "where the host keeps its sockets" },
#undef OWN
#undef SECRET
	};
	for (size_t i = 0; i < sizeof closed / sizeof *closed; i++) {
		bool is_above = path_is_beneath(closed[i].path, path);
		if (is_above || path_is_beneath(path, closed[i].path))
			return fail(err, ERR_INVALID, "system.show: '%s' %s '%s', which is %s",
				path,
				is_above && strcmp(path, closed[i].path) ? "holds"
									 : "is or lies in",
				closed[i].path, closed[i].is);
	}
	return 0;
}
