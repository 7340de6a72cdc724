/* carrel-build -- builds environments: resolves, fetches and unpacks in sandboxes. A separate
 * program, so that carrel links few libraries. Under other names (argv[0]) it is the egress role
 * and the job over trees. */
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
