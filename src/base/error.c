#define ERROR_IS_DEFINED_HERE
#include "base/error.h"
#include "base/str.h"

#define CONTEXT_MAX 256 /* bytes of a context that are kept when the whole doesn't fit */

/* The formatted text, made safe to show in `size` bytes. It goes through memory of its own, so that
 * the arguments may point into the error being set; that is longer than anything shown, so that
 * only str_printable cuts, between characters and with a mark. */
__attribute__((format(printf, 3, 0))) static void format_shown(
	char *out, size_t size, const char *fmt, va_list args)
{
	char raw[1024];
	int len = vsnprintf(raw, sizeof raw, fmt, args);
	str_printable(out, size, (struct str){ raw, len < 0 ? 0 : strlen(raw) });
}

__attribute__((format(printf, 5, 0))) static int set(struct error *err, enum error_code code,
	int sys_errno, const char *hint, const char *fmt, va_list args)
{
	char text[ERROR_TEXT_SIZE], shown_hint[ERROR_HINT_SIZE], reason[96] = "";
	if (!err)
		return -1;
	/* Not strerror: that may look for translations. */
	if (sys_errno) {
		const char *known = strerrordesc_np(sys_errno);
		if (known)
			str_format(reason, sizeof reason, ": %s", known);
		else
			str_format(reason, sizeof reason, ": errno %d", sys_errno);
	}
	/* The reason must survive a name of 4,000 bytes. */
	format_shown(text, sizeof text - strlen(reason), fmt, args);
	str_printable(shown_hint, sizeof shown_hint, str_from(hint));
	*err = (struct error){ .code = code, .sys_errno = sys_errno };
	str_format(err->text, sizeof err->text, "%s%s", text, reason);
	str_copy(err->hint, sizeof err->hint, shown_hint);
	errno = sys_errno ? sys_errno : errno;
	return -1;
}

int fail(struct error *err, enum error_code code, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	set(err, code, 0, "", fmt, args);
	va_end(args);
	return -1;
}

int fail_hint(struct error *err, enum error_code code, const char *hint, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	set(err, code, 0, hint ? hint : "", fmt, args);
	va_end(args);
	return -1;
}

int fail_errno(struct error *err, const char *fmt, ...)
{
	int saved = errno;
	va_list args;
	va_start(args, fmt);
	set(err, error_code_from_errno(saved), saved, "", fmt, args);
	va_end(args);
	return -1;
}

int fail_errno_code(struct error *err, enum error_code code, const char *fmt, ...)
{
	int saved = errno;
	va_list args;
	va_start(args, fmt);
	set(err, code, saved, "", fmt, args);
	va_end(args);
	return -1;
}

int error_context(struct error *err, const char *fmt, ...)
{
	char context[CONTEXT_MAX], old[ERROR_TEXT_SIZE];
	va_list args;
	if (!err)
		return -1;
	va_start(args, fmt);
	format_shown(context, sizeof context, fmt, args);
	va_end(args);
	str_copy(old, sizeof old, err->text);
	if (str_format(err->text, sizeof err->text, "%s: %s", context, old))
		return -1;
	const char *kept =
		old + strlen(old) - (sizeof err->text - 1 - strlen(context) - strlen(": ..."));
	while ((*kept & 0xc0) == 0x80)
		kept++;
	str_format(err->text, sizeof err->text, "%s: ...%s", context, kept);
	return -1;
}

int error_hint(struct error *err, const char *fmt, ...)
{
	char hint[ERROR_HINT_SIZE];
	va_list args;
	if (!err)
		return -1;
	va_start(args, fmt);
	format_shown(hint, sizeof hint, fmt, args);
	va_end(args);
	str_copy(err->hint, sizeof err->hint, hint);
	return -1;
}

int error_adopt(struct error *err)
{
	enum error_code code =
		err->code > ERR_NONE && err->code < ERR_CODE_COUNT ? err->code : ERR_FAILED;
	int sys_errno = err->sys_errno;
	err->text[sizeof err->text - 1] = err->hint[sizeof err->hint - 1] = '\0';
	fail_hint(err, code, err->hint, "%s", err->text);
	err->sys_errno = sys_errno;
	return -1;
}

const char *error_code_name(enum error_code code)
{
	static const char *const names[ERR_CODE_COUNT] = {
		[ERR_NONE] = "none",
		[ERR_INVALID] = "invalid",
		[ERR_NOT_FOUND] = "not_found",
		[ERR_CONFLICT] = "conflict",
		[ERR_DENIED] = "denied",
		[ERR_LIMIT] = "limit",
		[ERR_DISK_FULL] = "disk_full",
		[ERR_UNAVAILABLE] = "unavailable",
		[ERR_CORRUPT] = "corrupt",
		[ERR_FAILED] = "failed",
		[ERR_COMMAND_NOT_FOUND] = "command_not_found",
		[ERR_NOT_EXECUTABLE] = "not_executable",
		[ERR_CANCELED] = "canceled",
		[ERR_UNAUTHENTICATED] = "unauthenticated",
		[ERR_POLICY] = "denied",
		[ERR_APPROVAL_REQUIRED] = "approval_required",
	};
	return (unsigned)code < ERR_CODE_COUNT ? names[code] : "failed";
}

enum error_code error_code_from_name(const char *name, enum error_code otherwise)
{
	for (int code = ERR_NONE + 1; name && code < ERR_CODE_COUNT; code++)
		if (!strcmp(name, error_code_name((enum error_code)code)))
			return (enum error_code)code;
	return otherwise;
}

int error_exit_code(enum error_code code)
{
	switch (code) {
	case ERR_COMMAND_NOT_FOUND:
		return 127;
	case ERR_CANCELED:
		return 130;
	case ERR_NOT_EXECUTABLE:
	case ERR_POLICY:
	case ERR_APPROVAL_REQUIRED:
		return 126;
	default:
		return 125;
	}
}

enum error_code error_code_from_errno(int sys_errno)
{
	static const struct {
		int sys_errno;
		enum error_code code;
	} table[] = {
		{ 0, ERR_NONE },
		{ EINVAL, ERR_INVALID },
		{ ENOTDIR, ERR_INVALID },
		{ EISDIR, ERR_INVALID },
		{ ELOOP, ERR_INVALID },
		{ ENAMETOOLONG, ERR_INVALID },
		{ EILSEQ, ERR_INVALID },
		{ ENOENT, ERR_NOT_FOUND },
		{ ESRCH, ERR_NOT_FOUND },
		{ ENODATA, ERR_NOT_FOUND },
		{ EEXIST, ERR_CONFLICT },
		{ EBUSY, ERR_CONFLICT },
		{ ENOTEMPTY, ERR_CONFLICT },
		{ ETXTBSY, ERR_CONFLICT },
		{ EADDRINUSE, ERR_CONFLICT },
		{ EAGAIN, ERR_CONFLICT },
		{ EACCES, ERR_DENIED },
		{ EPERM, ERR_DENIED },
		{ EROFS, ERR_DENIED },
		{ EXDEV, ERR_DENIED },
		{ E2BIG, ERR_LIMIT },
		{ EFBIG, ERR_LIMIT },
		{ EMFILE, ERR_LIMIT },
		{ ENFILE, ERR_LIMIT },
		{ EOVERFLOW, ERR_LIMIT },
		{ ERANGE, ERR_LIMIT },
		{ EMSGSIZE, ERR_LIMIT },
		{ ENOSPC, ERR_DISK_FULL },
		{ EDQUOT, ERR_DISK_FULL },
		{ ENOSYS, ERR_UNAVAILABLE },
		{ EOPNOTSUPP, ERR_UNAVAILABLE },
		{ ENODEV, ERR_UNAVAILABLE },
		{ EAFNOSUPPORT, ERR_UNAVAILABLE },
		{ EPROTONOSUPPORT, ERR_UNAVAILABLE },
		{ EUCLEAN, ERR_CORRUPT },
		{ EBADMSG, ERR_CORRUPT },
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (table[i].sys_errno == sys_errno)
			return table[i].code;
	}
	return ERR_FAILED;
}
