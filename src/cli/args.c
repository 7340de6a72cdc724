#include "cli/args.h"

#include "base/str.h"
#include "format/text/quantity.h"

/* Iterates over the options of a spec; a record yields one option per field. */
struct options {
	const struct arg_spec *spec;
	size_t next, field;
	struct arg_option made;
	char name[32];
};

static enum arg_kind kind_of(const struct field *row)
{
	return row->kind == FIELD_SIZE	     ? ARG_SIZE
	       : row->kind == FIELD_DURATION ? ARG_DURATION
	       : row->kind == FIELD_CPUS     ? ARG_CPUS
	       : row->kind == FIELD_INTEGER  ? ARG_COUNT
					     : ARG_RECORD;
}

static const struct arg_option *with_help(struct options *options, const struct arg_option *of)
{
	for (const struct arg_help *help = of->helps; help && help->name; help++)
		if (!strcmp(help->name, options->made.name))
			options->made.help = help->help;
	return &options->made;
}

static const struct arg_option *make_option(
	struct options *options, const struct arg_option *of, const struct field *row)
{
	static const char *const metavars[] = {
		[ARG_SIZE] = "SIZE", [ARG_DURATION] = "TIME", [ARG_CPUS] = "N", [ARG_COUNT] = "N"
	};
	enum arg_kind kind = kind_of(row);
	options->made = (struct arg_option){ .name = options->name,
		.kind = kind,
		.offset = of->offset + row->offset,
		.metavar = metavars[kind],
		.help = row->help,
		.least = row->least,
		.most = kind == ARG_COUNT ? row->most : 0 };
	str_copy(options->name, sizeof options->name, row->name);
	for (char *c = options->name; *c; c++)
		*c = *c == '_' ? '-' : *c;
	return with_help(options, of);
}

/* NULL after the last. What it returns lives until the next call. */
static const struct arg_option *next_option(struct options *options)
{
	while (options->next < options->spec->option_count) {
		const struct arg_option *option = &options->spec->options[options->next];
		size_t at = options->field++;
		if (option->kind == ARG_ROWS && at < option->row_count) {
			options->made = option->rows[at];
			return with_help(options, option);
		}
		if (option->kind == ARG_RECORD && at < option->record->count) {
			const struct field *row = &option->record->rows[at];
			if (field_is(option->record, row, FIELD_IN) && kind_of(row) != ARG_RECORD)
				return make_option(options, option, row);
			continue;
		}
		options->next++;
		options->field = 0;
		if (option->kind < ARG_ROWS)
			return option;
	}
	return NULL;
}

/* What it returns lives as long as *options. */
static const struct arg_option *find_option(
	const struct arg_spec *spec, struct str name, char letter, struct options *options)
{
	const struct arg_option *option;
	*options = (struct options){ .spec = spec };
	while ((option = next_option(options)))
		if (letter ? option->letter == letter : str_is(name, option->name))
			return option;
	return NULL;
}

static bool is_choice(const char *choices, const char *value)
{
	struct str rest = str_from(choices), choice;
	while (str_next(&rest, '|', &choice))
		if (str_is(choice, value))
			return true;
	return false;
}

static int parse_number(
	const struct arg_option *option, const char *value, uint64_t *number, struct error *err)
{
	switch (option->kind) {
	case ARG_SIZE:
		return quantity_parse_size(value, number, err);
	case ARG_DURATION:
		return quantity_parse_duration(value, number, err);
	case ARG_CPUS:
		return quantity_parse_cpus(value, number, err);
	default:
		return quantity_parse_count(
			value, option->least, option->most ? option->most : INT64_MAX, number, err);
	}
}

static int set_number(
	const struct arg_option *option, const char *value, void *field, struct error *err)
{
	uint64_t number = 0;
	if (parse_number(option, value, &number, err))
		return error_context(err, "--%s", option->name);
	if (number < option->least) {
		char least[16];
		if (option->kind == ARG_SIZE)
			quantity_format_size(least, option->least);
		else
			str_format(least, sizeof least, "%llu%s", (unsigned long long)option->least,
				option->kind == ARG_DURATION ? "ms" : "");
		return fail(err, ERR_INVALID, "--%s: '%s' is too small; the minimum is %s",
			option->name, value, least);
	}
	*(uint64_t *)field = number;
	return 0;
}

static int set_value(const struct arg_option *option, const char *value, void *options,
	struct arena *arena, struct error *err)
{
	void *field = (char *)options + option->offset;
	bool is_text = option->kind == ARG_TEXT || option->kind == ARG_LIST;
	if (is_text && option->least && !value[0])
		return fail(err, ERR_INVALID, "--%s: the value is empty", option->name);
	switch (option->kind) {
	case ARG_FLAG:
		*(bool *)field = true;
		return 0;
	case ARG_TEXT:
		*(const char **)field = value;
		return 0;
	case ARG_LIST:
		vec_push(arena, (text_list *)field, value);
		return 0;
	case ARG_CHOICE:
		if (option->later && is_choice(option->later, value)) {
			fail(err, ERR_UNAVAILABLE, "--%s %s is not available in this version",
				option->name, value);
			return error_hint(
				err, "leave it out, or use --%s %s", option->name, option->choices);
		}
		if (!is_choice(option->choices, value))
			return fail(err, ERR_INVALID, "--%s: invalid value '%s'; use %s",
				option->name, value, option->choices);
		*(const char **)field = value;
		return 0;
	default:
		return set_number(option, value, field, err);
	}
}

/* The option that was probably meant; false: none. */
static bool find_nearest(const struct arg_spec *spec, struct str name, char nearest[32])
{
	struct options options = { .spec = spec };
	const struct arg_option *option;
	size_t least = SIZE_MAX;
	char given[64];
	str_format(given, sizeof given, "%.*s", (int)name.len, name.data);
	while ((option = next_option(&options)))
		if (str_is_nearer(given, option->name, &least))
			str_copy(nearest, 32, option->name);
	return least != SIZE_MAX;
}

/* Options of Docker that Carrel doesn't have. */
static const struct {
	const char *command, *names, *hint;
} docker_options[] = {
	{ "run", "rm", "leave it out: nothing of carrel run stays" },
	{ "create", "rm", "carrel run -- CMD needs no workspace; --ttl TIME removes one" },
	{ "run", "p|publish",
		"carrel create NAME, carrel exec -d NAME -- CMD, carrel port NAME PORT" },
	{ "create", "p|publish", "carrel port NAME PORT, when something listens there" },
};

static const char *find_docker_option(const struct arg_spec *spec, struct str option)
{
	for (size_t i = 0; i < sizeof docker_options / sizeof *docker_options; i++) {
		struct str rest = str_from(docker_options[i].names), name;
		while (!strcmp(spec->command, docker_options[i].command) &&
			str_next(&rest, '|', &name))
			if (str_equal(option, name))
				return docker_options[i].hint;
	}
	return NULL;
}

static int unknown(const struct arg_spec *spec, struct error *err, const char *what, int len)
{
	char nearest[32];
	struct str name = { what, (size_t)len }, rest = str_from(spec->later ? spec->later : ""),
		   later;
	while (name.len && name.data[0] == '-')
		name = (struct str){ name.data + 1, name.len - 1 };
	while (str_next(&rest, '|', &later))
		if (str_equal(name, later))
			return fail(err, ERR_UNAVAILABLE, "'%.*s' is not available in this version",
				len, what);
	fail(err, ERR_INVALID, "unknown option '%.*s'", len, what);
	const char *docker = find_docker_option(spec, name);
	if (docker)
		return error_hint(err, "%s", docker);
	if (find_nearest(spec, name, nearest))
		return error_hint(err, "did you mean --%s?", nearest);
	return error_hint(err, "carrel %s --help shows the options", spec->command);
}

static int missing_value(const struct arg_option *option, const char *shown, struct error *err)
{
	return fail(err, ERR_INVALID, "option '%s' needs a value: %s", shown, option->metavar);
}

/* One "--name", "--name=value" or "--name value"; *at moves past what was used. */
static int parse_long(const struct arg_spec *spec, int argc, char **argv, int *at, void *options,
	struct arena *arena, bool *help, struct error *err)
{
	const char *word = argv[*at];
	struct str name, value;
	bool has_value = str_cut(str_from(word + 2), '=', &name, &value);
	if (str_is(name, "help") && !has_value) {
		*help = true;
		return 0;
	}
	struct options of;
	const struct arg_option *option = find_option(spec, name, 0, &of);
	if (!option)
		return unknown(spec, err, word, (int)name.len + 2);
	(*at)++;
	if (option->kind == ARG_FLAG) {
		if (has_value)
			return fail(err, ERR_INVALID, "option '--%s' takes no value", option->name);
		return set_value(option, NULL, options, arena, err);
	}
	if (has_value)
		return set_value(option, value.data, options, arena, err);
	if (*at >= argc)
		return missing_value(option, word, err);
	return set_value(option, argv[(*at)++], options, arena, err);
}

/* One "-x", "-xyz", "-xVALUE" or "-x VALUE". */
static int parse_letters(const struct arg_spec *spec, int argc, char **argv, int *at, void *options,
	struct arena *arena, bool *help, struct error *err)
{
	const char *word = argv[(*at)++];
	for (const char *c = word + 1; *c; c++) {
		struct options of;
		const struct arg_option *option = find_option(spec, STR(""), *c, &of);
		if (*c == 'h' && !option) {
			*help = true;
			return 0;
		}
		if (!option)
			return unknown(spec, err, (char[]){ '-', *c, 0 }, 2);
		if (option->kind == ARG_FLAG) {
			if (set_value(option, NULL, options, arena, err))
				return -1;
			continue;
		}
		if (c[1])
			return set_value(option, c + 1, options, arena, err);
		if (*at >= argc)
			return missing_value(option, (char[]){ '-', *c, 0 }, err);
		return set_value(option, argv[(*at)++], options, arena, err);
	}
	return 0;
}

/* Options from *at on, up to the first operand; *is_end: "--" stood before it. */
static int parse_options(const struct arg_spec *spec, int argc, char **argv, int *at, void *options,
	struct arena *arena, bool *is_end, bool *help, struct error *err)
{
	*is_end = *help = false;
	while (*at < argc && argv[*at][0] == '-' && argv[*at][1] && !*help) {
		if (!strcmp(argv[*at], "--")) {
			(*at)++;
			*is_end = true;
			break;
		}
		int failed =
			argv[*at][1] == '-'
				? parse_long(spec, argc, argv, at, options, arena, help, err)
				: parse_letters(spec, argc, argv, at, options, arena, help, err);
		if (failed)
			return -1;
	}
	return 0;
}

int args_parse(const struct arg_spec *spec, int argc, char **argv, void *options,
	struct arena *arena, int *operands, bool *help, struct error *err)
{
	int at = 1;
	bool is_end;
	if (parse_options(spec, argc, argv, &at, options, arena, &is_end, help, err))
		return -1;
	*operands = at;
	return 0;
}

int args_parse_mixed(const struct arg_spec *spec, int argc, char **argv, void *options,
	struct arena *arena, text_list *operands, bool *help, struct error *err)
{
	bool is_end = false;
	*help = false;
	for (int at = 1; at < argc && !*help; at++) {
		if (!is_end &&
			parse_options(spec, argc, argv, &at, options, arena, &is_end, help, err))
			return -1;
		if (at < argc && !*help)
			vec_push(arena, operands, argv[at]);
	}
	return 0;
}

struct arg_usage args_usage(const struct arg_spec *spec)
{
	const char *rest = spec->usage	    ? spec->usage
			   : spec->commands ? "COMMAND [options]"
					    : "[options]";
	struct arg_usage usage;
	str_format(usage.text, sizeof usage.text, "carrel%s%s%s%s", spec->command[0] ? " " : "",
		spec->command, rest[0] ? " " : "", rest);
	return usage;
}

/* The operands of the first usage line: "NAME", "[NEW]" and "FILE...", up to the first option. */
static size_t count_operands(const struct arg_spec *spec, size_t *most)
{
	const char *usage = spec->usage ? spec->usage : "[options]";
	struct str rest = { usage, strcspn(usage, "\n") }, word;
	size_t least = 0;
	*most = 0;
	while (str_next(&rest, ' ', &word) && word.data[0] != '-' && !str_is(word, "[options]") &&
		!str_starts_with(word, "[-")) {
		least += word.data[0] != '[';
		bool repeats = memmem(word.data, word.len, "...", 3);
		*most = repeats || *most == SIZE_MAX ? SIZE_MAX : *most + 1;
	}
	if (spec->most)
		*most = spec->most;
	return spec->least ? spec->least : least;
}

size_t args_least(const struct arg_spec *spec)
{
	size_t most;
	return count_operands(spec, &most);
}

/* A hint is one line: take the first line of the usage. */
static int hint_usage(const struct arg_spec *spec, struct error *err)
{
	const struct arg_usage usage = args_usage(spec);
	return error_hint(err, "%.*s", (int)strcspn(usage.text, "\n"), usage.text);
}

int args_check_operands(const struct arg_spec *spec, const text_list *operands, struct error *err)
{
	size_t most, least = count_operands(spec, &most);
	if (operands->count > most) {
		fail(err, ERR_INVALID, "unexpected argument '%s'", operands->items[most]);
		return hint_usage(spec, err);
	}
	if (operands->count >= least)
		return 0;
	const char *name = spec->usage;
	for (size_t i = 0; i < operands->count && strchr(name, ' '); i++)
		name = strchr(name, ' ') + 1;
	int len = (int)strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	fail(err, ERR_INVALID, "%s needs a%s %.*s", spec->command,
		strchr("AEIO", name[0]) ? "n" : "", len, name);
	return hint_usage(spec, err);
}

bool args_want_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "-ojson") || !strcmp(argv[i], "--format=json") ||
			(i + 1 < argc && (!strcmp(argv[i], "-o") || !strcmp(argv[i], "--format")) &&
				!strcmp(argv[i + 1], "json")))
			return true;
	return false;
}

#define HELP_COLUMN 31
#define HELP_WIDTH 80

/* Words of `text` from `column` on, on as many lines as they take. */
static void print_wrapped(struct buf *out, const char *text, size_t column)
{
	size_t at = column;
	while (*text) {
		size_t len = strcspn(text, " \n");
		if (at > column && at + 1 + len > HELP_WIDTH) {
			buf_printf(out, "\n%*s", (int)column, "");
			at = column;
		}
		buf_printf(out, "%s%.*s", at > column ? " " : "", (int)len, text);
		at += len + (at > column);
		text += len + (text[len] != 0);
	}
	buf_char(out, '\n');
}

static void print_option(
	struct buf *out, char letter, const char *name, const char *metavar, const char *help)
{
	char left[64], shortly[8] = "    ";
	if (letter)
		str_format(shortly, sizeof shortly, "-%c, ", letter);
	str_format(left, sizeof left, "  %s--%s%s%s", shortly, name, metavar ? " " : "",
		metavar ? metavar : "");
	buf_printf(out, "%-*s", HELP_COLUMN, left);
	if (strlen(left) >= HELP_COLUMN)
		buf_printf(out, "\n%*s", HELP_COLUMN, "");
	print_wrapped(out, help, HELP_COLUMN);
}

void args_print_help(const struct arg_spec *spec, struct buf *out)
{
	buf_printf(out, "usage: %s\n\n", args_usage(spec).text);
	print_wrapped(out, spec->about, 0);
	buf_text(out, "\noptions:\n");
	struct options options = { .spec = spec };
	const struct arg_option *option;
	while ((option = next_option(&options)))
		print_option(out, option->letter, option->name, option->metavar, option->help);
	print_option(out, 'h', "help", NULL, "show this");
	if (spec->examples)
		buf_printf(out, "\nexamples:\n%s", spec->examples);
}

bool args_find(const struct arg_spec *spec, struct str name, char letter, struct arg_option *option)
{
	struct options options;
	const struct arg_option *found = find_option(spec, name, letter, &options);
	if (found)
		*option = *found;
	return found;
}

void args_each(const struct arg_spec *spec, void (*fn)(void *ctx, const struct arg_option *option),
	void *ctx)
{
	struct options options = { .spec = spec };
	const struct arg_option *option;
	while ((option = next_option(&options)))
		fn(ctx, option);
}

static void print_given(
	const struct arg_option *option, const void *field, struct arena *arena, text_list *words)
{
	const text_list *list = field;
	const char *text = option->kind == ARG_TEXT || option->kind == ARG_CHOICE
				   ? *(const char *const *)field
				   : NULL;
	if (option->kind == ARG_FLAG && *(const bool *)field)
		vec_push(arena, words, arena_printf(arena, "--%s", option->name));
	else if (option->kind == ARG_DURATION && *(const uint64_t *)field)
		text = arena_printf(arena, "%" PRIu64 "ms", *(const uint64_t *)field);
	if (text)
		vec_push(arena, words, arena_printf(arena, "--%s=%s", option->name, text));
	for (size_t i = 0; option->kind == ARG_LIST && i < list->count; i++)
		vec_push(
			arena, words, arena_printf(arena, "--%s=%s", option->name, list->items[i]));
}

void args_print_given(
	const struct arg_spec *spec, const void *options, struct arena *arena, text_list *words)
{
	struct options of = { .spec = spec };
	const struct arg_option *option;
	while ((option = next_option(&of)))
		print_given(option, (const char *)options + option->offset, arena, words);
}
