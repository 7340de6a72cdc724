#include "api/problem.h"
#include "format/json.h"

static const int statuses[ERR_CODE_COUNT] = {
	[ERR_NONE] = 500,
	[ERR_INVALID] = 400,
	[ERR_NOT_FOUND] = 404,
	[ERR_CONFLICT] = 409,
	[ERR_DENIED] = 403,
	[ERR_LIMIT] = 429,
	[ERR_DISK_FULL] = 507,
	[ERR_UNAVAILABLE] = 503,
	[ERR_CORRUPT] = 500,
	[ERR_FAILED] = 500,
	[ERR_COMMAND_NOT_FOUND] = 400,
	[ERR_NOT_EXECUTABLE] = 400,
	[ERR_CANCELED] = 409,
};

static const struct {
	int status;
	const char *title;
} titles[] = {
	{ 400, "Bad Request" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 503, "Service Unavailable" },
	{ 507, "Insufficient Storage" },
};

int problem_status(enum error_code code)
{
	return (unsigned)code < ERR_CODE_COUNT ? statuses[code] : 500;
}

const char *problem_title(int status)
{
	for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
		if (titles[i].status == status)
			return titles[i].title;
	return "Error";
}

void problem_print(struct buf *out, int status, const struct error *err, const char *request_id)
{
	struct json j = json_to(out, false);
	json_object(&j, NULL);
	json_text(&j, "type", "about:blank");
	json_text(&j, "title", problem_title(status));
	json_i64(&j, "status", status);
	json_text(&j, "code", error_code_name(err->code));
	json_text(&j, "detail", err->text);
	json_text(&j, "hint", err->hint[0] ? err->hint : NULL);
	json_text(&j, "request_id", request_id);
	if (err->code == ERR_COMMAND_NOT_FOUND || err->code == ERR_NOT_EXECUTABLE)
		json_i64(&j, "exit_code", error_exit_code(err->code));
	json_end(&j);
}
