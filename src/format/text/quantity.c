#include "base/str.h"
#include "format/text/quantity.h"

#define DECIMALS_MAX 9
#define YEARS_100_MS (36525ull * 24 * 3600 * 1000)

struct unit {
	const char *name;
	uint64_t factor;
};

/* "12.50" as whole = 12, fraction = 50, scale = 100. */
struct decimal {
	uint64_t whole, fraction, scale;
};

/* Takes a decimal number off the front of *text. false when there is none, or it is too long. */
static bool take_decimal(struct str *text, struct decimal *number)
{
	static const char digits[] = "0123456789";
	size_t whole = strspn(text->data, digits), fraction = 0;
	bool has_point = text->data[whole] == '.';
	if (has_point)
		fraction = strspn(text->data + whole + 1, digits);
	if (fraction > DECIMALS_MAX || (has_point && fraction == 0) || whole + fraction == 0)
		return false;
	*number = (struct decimal){ .scale = 1 };
	if (whole > 0 && !str_to_u64((struct str){ text->data, whole }, &number->whole))
		return false;
	if (has_point)
		str_to_u64((struct str){ text->data + whole + 1, fraction }, &number->fraction);
	for (size_t i = 0; i < fraction; i++)
		number->scale *= 10;
	size_t taken = whole + (has_point ? 1 + fraction : 0);
	text->data += taken;
	text->len -= taken;
	return true;
}

/* number * factor, rounded down. false when the result exceeds INT64_MAX, when the number has a
 * fraction of the smallest unit, or when a number above 0 would be rounded to 0, which often means
 * "no limit". */
static bool scale(struct decimal number, uint64_t factor, uint64_t *value)
{
	unsigned __int128 product = (unsigned __int128)number.whole * factor +
				    (unsigned __int128)number.fraction * factor / number.scale;
	if (product > INT64_MAX)
		return false;
	if (number.fraction > 0 && (factor == 1 || product == 0))
		return false;
	*value = (uint64_t)product;
	return true;
}

static bool find_unit(const struct unit *units, const char *name, uint64_t *factor)
{
	for (; units->name; units++) {
		if (strcmp(units->name, name) == 0) {
			*factor = units->factor;
			return true;
		}
	}
	return false;
}

static const char size_letters[] = "KMGTPE";

/* "", "b", or a letter alone, with "b" or with "ib", in either case. */
static bool find_size_unit(const char *name, uint64_t *factor)
{
	const char *letter = memchr(size_letters, name[0] & ~0x20, sizeof size_letters - 1);
	*factor = letter ? 1ull << 10 * (letter - size_letters + 1) : 1;
	name += letter != NULL;
	return !name[0] || strcasecmp(name, "b") == 0 || (letter && strcasecmp(name, "ib") == 0);
}

int quantity_parse_size(const char *text, uint64_t *bytes, struct error *err)
{
	struct str rest = str_from(text);
	struct decimal number;
	uint64_t factor;
	if (!take_decimal(&rest, &number) || !find_size_unit(rest.data, &factor))
		return fail(err, ERR_INVALID, "'%s' is not a size; try 512M or 1G", text);
	if (!scale(number, factor, bytes))
		return fail(err, ERR_INVALID,
			"'%s' is not a size below 8E in whole bytes; try 512M or 1G", text);
	return 0;
}

int quantity_parse_duration(const char *text, uint64_t *ms, struct error *err)
{
	static const struct unit units[] = {
		{ "", 1000 },
		{ "ms", 1 },
		{ "s", 1000 },
		{ "m", 60000 },
		{ "h", 3600000 },
		{ "d", 86400000 },
		{ 0 },
	};
	struct str rest = str_from(text);
	struct decimal number;
	uint64_t factor, value;
	if (!take_decimal(&rest, &number) || !find_unit(units, rest.data, &factor))
		return fail(err, ERR_INVALID,
			"'%s' is not a duration; try 30s, 1500ms, 5m, 2h or 7d", text);
	if (!scale(number, factor, &value) || value > YEARS_100_MS)
		return fail(err, ERR_INVALID,
			"'%s' is not a duration from 1ms to 100 years in whole milliseconds; try "
			"30s or 5m",
			text);
	*ms = value;
	return 0;
}

int quantity_parse_count(
	const char *text, uint64_t least, uint64_t most, uint64_t *count, struct error *err)
{
	uint64_t value;
	if (!str_to_u64(str_from(text), &value) || value < least || value > most)
		return fail(err, ERR_INVALID,
			"'%s' is not a whole number from %" PRIu64 " to %" PRIu64, text, least,
			most);
	*count = value;
	return 0;
}

int quantity_parse_cpus(const char *text, uint64_t *millicpus, struct error *err)
{
	struct str rest = str_from(text);
	struct decimal number;
	uint64_t value;
	if (!take_decimal(&rest, &number) || rest.len > 0 || !scale(number, 1000, &value) ||
		value < 10 || value > 4096 * 1000)
		return fail(err, ERR_INVALID,
			"'%s' is not a number of CPUs from 0.01 to 4096; try 0.5 or 2", text);
	*millicpus = value;
	return 0;
}

void quantity_format_size(char out[16], uint64_t bytes)
{
	unsigned __int128 unit = 1024;
	size_t at = 0;
	if (bytes < 1024) {
		snprintf(out, 16, "%u", (unsigned)bytes);
		return;
	}
	/* The first unit in which the rounded value is below 1024. */
	while ((bytes + unit / 2) / unit >= 1024) {
		unit *= 1024;
		at++;
	}
	unsigned tenths = (unsigned)(((unsigned __int128)bytes * 10 + unit / 2) / unit);
	if (tenths < 100)
		snprintf(out, 16, "%u.%u%c", tenths / 10, tenths % 10, size_letters[at]);
	else
		snprintf(out, 16, "%u%c", (unsigned)((bytes + unit / 2) / unit), size_letters[at]);
}
