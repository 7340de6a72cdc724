/* builder.h -- carrel-build: the half of `carrel env` that runs things in build sandboxes. It takes
 * the arguments of `carrel env build` and `carrel env verify`, and is run by carrel. */
#pragma once
int builder_main(int argc, char **argv);
