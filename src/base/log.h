/* log.h -- lines for operators, from the mains and roles only: library rooms return errors instead.
 * One line a record, text ("04:50:52.123 info  message key=value") or JSON; values are escaped, so
 * that a name can't forge a record.
 * Writing never blocks and never writes part of a line: lost lines are counted, and the next line
 * that is written gives their number. */
#pragma once
#define LOG_FILE_BYTES_MAX (8u << 20) /* of the file of a daemon in the background, about */
enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };
struct log_losses {
	uint64_t unsaid, ever; /* records */
};
struct log {
	int fd;
	bool json;
	enum log_level least;
	const char *role;	   /* a field of every record, or NULL */
	struct log_losses *losses; /* or NULL: not counted */
};
extern const char *const log_level_names[]; /* ended by NULL */
/* The level of that name, or `otherwise`. */
enum log_level log_level_of(const char *name, enum log_level otherwise);
/* Fields are alternating `const char *key, const char *value`, ended by NULL; keys are trusted,
 * values are not, and are cut so that the record is one write(2) of at most 4,096 bytes. In text
 * form a value with anything but [A-Za-z0-9] and _-+./:,@% is quoted as in JSON; in JSON the record
 * also has time, level and message. */
void log_record(const struct log *log, enum log_level level, const char *message, ...)
	__attribute__((sentinel));
