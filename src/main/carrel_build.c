/* carrel-build -- makes environments: resolves, fetches and unpacks in sandboxes. A program of its
 * own, so that carrel stays light. By another name it is the egress role. */
#include <string.h>
#include "cli/cli.h"
#include "egress/egress.h"

int main(int argc, char **argv)
{
	if (argc == 1 && !strcmp(argv[0], EGRESS_ARGV0))
		return egress_main();
	return builder_main(argc, argv);
}
