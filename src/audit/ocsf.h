/* ocsf.h -- a line of the audit log as an event of the Open Cybersecurity Schema Framework (1.3):
 * API Activity (6003), Process Activity (1007), File System Activity (1001), Network Activity
 * (4001), Authentication (3002), Application Lifecycle (6002). What has no place there is in
 * `unmapped`. Pure. */
#pragma once
#include "format/text/json.h"
#include "format/text/json_read.h"

/* line: a line of the log, read. host: the name of this machine. */
void ocsf_print(struct json *j, const struct json_value *line, const char *host);
