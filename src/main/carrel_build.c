/* carrel-build -- makes environments: resolves, fetches and unpacks in sandboxes. A program of its
 * own, so that carrel stays light. By other names it is the egress role and the one that works on
 * trees. */
#include <string.h>
#include "cli/cli.h"
#include "egress/egress.h"
#include "launch/trees/tree_job.h"

int main(int argc, char **argv)
{
	if (argc == 1 && !strcmp(argv[0], EGRESS_ARGV0))
		return egress_main();
	if (!strcmp(argv[0], TREE_ARGV0))
		return tree_main(argc, argv);
	return builder_main(argc, argv);
}
