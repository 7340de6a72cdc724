/* Stands in the place of a program that a policy denies: notes that it ran. */
#include <fcntl.h>
#include <unistd.h>

int main(void)
{
	int fd = open("/tmp/ran", O_WRONLY | O_CREAT | O_APPEND, 0666);

	return write(fd, "x", 1) != 1;
}
